#pragma once

#include "lockstep/core/error.hpp"
#include "lockstep/data/array_dataset.hpp"
#include "lockstep/data/idx.hpp"

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

namespace lockstep {

/// Fashion-MNIST: grey images of 28 x 28 pixels, kept as bytes and loaded in [0, 1], with labels in [0, 10).
/// `source` is the folder that they came from.
/// Source: H. Xiao, K. Rasul, R. Vollgraf, "Fashion-MNIST: a novel image dataset for benchmarking machine learning algorithms",
/// 2017.
struct FashionMnist {
    using Images = ArrayDataset<784, ClassLabels<10>, std::uint8_t>;
    Images train;
    Images test;
    std::filesystem::path source;
};

namespace detail {

inline constexpr std::array<std::string_view, 4> fashion_mnist_parts = {"train-images", "train-labels", "t10k-images",
                                                                        "t10k-labels"};

/// The file of one part in `folder`, in any of its usual spellings.
[[nodiscard]] inline std::optional<std::filesystem::path> find_part(std::filesystem::path const& folder, std::string_view part) {
    std::string const stem{part};
    char const* const kind = part.ends_with("images") ? "idx3-ubyte" : "idx1-ubyte";
    for (char const* const separator : {"-", "."}) {
        for (char const* const ending : {"", ".gz"}) {
            auto path = folder / (stem + separator + kind + ending);
            std::error_code ignored;
            auto const status = std::filesystem::status(path, ignored);
            // Some archives unpack into folders of the files' names.
            if (std::filesystem::exists(status) && !std::filesystem::is_directory(status)) { return path; }
        }
    }
    return std::nullopt;
}

/// The places where `fashion_mnist(given)` looks, in this order.
[[nodiscard]] inline std::vector<std::filesystem::path> fashion_mnist_places(std::filesystem::path const& given) {
    if (!given.empty()) { return {given}; }
    auto const environment = [](char const* name) -> std::filesystem::path {
        char const* const value = std::getenv(name);
        return value == nullptr ? "" : value;
    };
    if (auto const chosen = environment("FASHION_MNIST_DIR"); !chosen.empty()) { return {chosen}; }
    std::vector<std::filesystem::path> places;
    if (auto const home = environment("HOME"); !home.empty()) { places.push_back(home / "data/FashionMNIST/raw"); }
    places.insert(places.end(), {"/usr/share/datasets/fashion-mnist", "./data", "./data/FashionMNIST/raw"});
    return places;
}

/// All four files of `folder`, or nothing when it has none of them. Throws DataError when only some are missing.
[[nodiscard]] inline std::optional<std::array<std::filesystem::path, 4>> find_parts(std::filesystem::path const& folder) {
    std::array<std::filesystem::path, 4> files;
    std::string missing;
    std::size_t found = 0;
    for (std::size_t part = 0; part < files.size(); ++part) {
        if (auto file = find_part(folder, fashion_mnist_parts[part])) {
            files[part] = std::move(*file);
            ++found;
        } else {
            auto const name = fashion_mnist_parts[part];
            missing += concat(missing.empty() ? "" : ", ", name, name.ends_with("images") ? "-idx3-ubyte" : "-idx1-ubyte");
        }
    }
    if (found == 0) { return std::nullopt; }
    if (found < files.size()) {
        throw DataError(concat(folder.string(), ": expected the four files of Fashion-MNIST, raw or .gz, found ", found,
                               "; missing: ", missing));
    }
    return files;
}

/// One half of a set: images (n, 28, 28) and as many labels.
[[nodiscard]] inline FashionMnist::Images read_images(std::filesystem::path const& images_path,
                                                      std::filesystem::path const& labels_path) {
    IdxArray labels = read_idx(labels_path, 1);
    IdxArray images = read_idx(images_path, 3);
    std::size_t const count = images.shape[0];
    if (images.shape[1] != 28 || images.shape[2] != 28) {
        throw DataError(
            concat(images_path.string(), ": expected images of 28 x 28 pixels, found ", images.shape[1], " x ", images.shape[2]));
    }
    if (count == 0) { throw DataError(concat(images_path.string(), ": expected at least one image, found 0")); }
    if (labels.shape[0] != count) {
        throw DataError(concat(labels_path.string(), ": expected ", count, " labels, one per image of ", images_path.string(),
                               ", found ", labels.shape[0]));
    }
    // Checked here so that the error names the file.
    auto checked = checked_labels(labels.values, FashionMnist::Images::classes, labels_path.string());
    return {std::move(images.values), std::move(checked)};
}

} // namespace detail

/// Reads Fashion-MNIST, or another set of the same form, from `folder`; without one from FASHION_MNIST_DIR; without that from the
/// first of torchvision's ~/data/FashionMNIST/raw, Debian's /usr/share/datasets/fashion-mnist, ./data and ./data/FashionMNIST/raw
/// that has it. Any number of images is accepted, raw or gzip. Throws DataError: nothing found (with all places looked in and how
/// to get the data), an incomplete folder, damaged files, labels and images that do not fit.
[[nodiscard]] inline FashionMnist fashion_mnist(std::filesystem::path const& folder = {}) {
    std::string looked_in;
    for (auto const& place : detail::fashion_mnist_places(folder)) {
        if (auto const files = detail::find_parts(place)) {
            auto const& [train_images, train_labels, test_images, test_labels] = *files;
            return {detail::read_images(train_images, train_labels), detail::read_images(test_images, test_labels), place};
        }
        std::error_code error;
        bool const present = std::filesystem::is_directory(place, error);
        looked_in +=
            detail::concat(looked_in.empty() ? "" : ", ", place.string(), present ? " (none of its files)" : " (no such folder)");
    }
    throw DataError(
        "Fashion-MNIST not found; looked in " + looked_in +
        "; to get it, install the Debian package dataset-fashion-mnist, or run cmake/fetch-fashion-mnist.sh FOLDER and set "
        "FASHION_MNIST_DIR to that folder");
}

} // namespace lockstep
