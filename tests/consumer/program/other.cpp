#include <lockstep/core/random.hpp>

int other_translation_unit();

int other_translation_unit() { return lockstep::philox(1, {})[0] == lockstep::philox(1, {})[0] ? 0 : 1; }
