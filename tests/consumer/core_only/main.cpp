#include <lockstep/core/random.hpp>
#include <lockstep/core/version.hpp>

int main() {
    static_assert(LOCKSTEP_VERSION_MAJOR >= 0);
    return lockstep::RandomStream{1, lockstep::RandomPurpose::data, 0}.uniform(0) < 1.0 ? 0 : 1;
}
