#include <lockstep/core/random.hpp>

int other_translation_unit();

int main() {
    auto const stream = lockstep::RandomStream{1, lockstep::RandomPurpose::data, 0};
    return stream.uniform(0) < 1.0 ? other_translation_unit() : 1;
}
