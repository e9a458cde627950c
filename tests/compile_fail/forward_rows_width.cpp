// expect-first: these rows do not fit the network: their width is not its number of inputs
// expect: rows_for_network<lockstep::Rows<(float const|const float), 3(UL)?>, 3(UL)?,
// lockstep::Sequential<lockstep::Linear<4(UL)?, 2(UL)?>[^;]*>, 4(UL)?>
#include <lockstep/nn/layers.hpp>
#include <lockstep/nn/model.hpp>

using namespace lockstep;

#ifdef LOCKSTEP_CONTROL
inline constexpr std::size_t width = 4;
#else
inline constexpr std::size_t width = 3;
#endif

void run(Model<Sequential<Linear<4, 2>>>& model, Rows<float const, width> rows) { model.forward(rows); }
