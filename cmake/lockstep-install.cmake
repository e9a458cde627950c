# Headers, targets and package config. Nothing in it depends on where the prefix lies or on the machine's architecture.

include(CMakePackageConfigHelpers)
include(GNUInstallDirs)

set(LOCKSTEP_CONFIG_DIR "${CMAKE_INSTALL_DATADIR}/cmake/lockstep")

install(DIRECTORY "${PROJECT_SOURCE_DIR}/include/" DESTINATION "${CMAKE_INSTALL_INCLUDEDIR}" FILES_MATCHING PATTERN "*.hpp" PATTERN "*.inc")

foreach(component IN ITEMS core lockstep mpi)
    set_target_properties(lockstep_${component} PROPERTIES EXPORT_NAME ${component})
    install(
        TARGETS lockstep_${component} EXPORT lockstep-${component}-targets
        INCLUDES DESTINATION "${CMAKE_INSTALL_INCLUDEDIR}"
    )
    install(EXPORT lockstep-${component}-targets NAMESPACE lockstep:: DESTINATION "${LOCKSTEP_CONFIG_DIR}")
endforeach()

configure_package_config_file(
    "${CMAKE_CURRENT_LIST_DIR}/lockstep-config.cmake.in" "${PROJECT_BINARY_DIR}/cmake/lockstep-config.cmake"
    INSTALL_DESTINATION "${LOCKSTEP_CONFIG_DIR}"
    NO_SET_AND_CHECK_MACRO NO_CHECK_REQUIRED_COMPONENTS_MACRO
)
write_basic_package_version_file(
    "${PROJECT_BINARY_DIR}/cmake/lockstep-config-version.cmake"
    COMPATIBILITY SameMinorVersion # before 1.0 a minor version may break
    ARCH_INDEPENDENT
)
install(
    FILES "${PROJECT_BINARY_DIR}/cmake/lockstep-config.cmake" "${PROJECT_BINARY_DIR}/cmake/lockstep-config-version.cmake"
          "${CMAKE_CURRENT_LIST_DIR}/lockstep-dependencies.cmake"
    DESTINATION "${LOCKSTEP_CONFIG_DIR}"
)
