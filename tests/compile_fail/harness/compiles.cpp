// harness: this compiles and should not
// expect: sentence
int main() {}
