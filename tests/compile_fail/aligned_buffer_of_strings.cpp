// expect-first: AlignedBuffer holds plain scalars
#include <lockstep/core/aligned_buffer.hpp>

#include <string>

template <class T>
std::size_t size_of_buffer() {
    return lockstep::AlignedBuffer<T>(1).size();
}

int main() {
#ifdef LOCKSTEP_CONTROL
    return size_of_buffer<float>() == 1 ? 0 : 1;
#else
    return size_of_buffer<std::string>() == 1 ? 0 : 1;
#endif
}
