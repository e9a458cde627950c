// harness: the control does not compile
// expect: sentence
static_assert(false, "sentence");
