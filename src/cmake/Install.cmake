# Installation in three components: the tool (with its man page and completions), the shared library, and
# what a program needs to be built with the library.
include(CMakePackageConfigHelpers)

set(nd_config_dir ${CMAKE_INSTALL_LIBDIR}/cmake/normdiff)

install(TARGETS normdiff_tool RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR} COMPONENT tool)
install(FILES ${PROJECT_SOURCE_DIR}/LICENSE
    DESTINATION ${CMAKE_INSTALL_DOCDIR} COMPONENT tool)
install(FILES ${PROJECT_SOURCE_DIR}/docs/normdiff.1
    DESTINATION ${CMAKE_INSTALL_MANDIR}/man1 COMPONENT tool)

# Completions come out of the tool itself, so they need one that runs here.
if(NOT CMAKE_CROSSCOMPILING OR CMAKE_CROSSCOMPILING_EMULATOR)
    set(nd_completions)
    foreach(shell bash zsh fish)
        set(file ${PROJECT_BINARY_DIR}/completions/normdiff.${shell})
        add_custom_command(OUTPUT ${file}
            COMMAND ${CMAKE_COMMAND} -E make_directory ${PROJECT_BINARY_DIR}/completions
            COMMAND normdiff_tool --completion=${shell} > ${file}
            DEPENDS normdiff_tool)
        list(APPEND nd_completions ${file})
    endforeach()
    add_custom_target(normdiff_completions ALL DEPENDS ${nd_completions})
    install(FILES ${PROJECT_BINARY_DIR}/completions/normdiff.bash RENAME normdiff
        DESTINATION ${CMAKE_INSTALL_DATADIR}/bash-completion/completions COMPONENT tool)
    install(FILES ${PROJECT_BINARY_DIR}/completions/normdiff.zsh RENAME _normdiff
        DESTINATION ${CMAKE_INSTALL_DATADIR}/zsh/site-functions COMPONENT tool)
    install(FILES ${PROJECT_BINARY_DIR}/completions/normdiff.fish
        DESTINATION ${CMAKE_INSTALL_DATADIR}/fish/vendor_completions.d COMPONENT tool)
endif()

install(TARGETS normdiff EXPORT normdiffStatic
    ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR} COMPONENT dev)
install(EXPORT normdiffStatic NAMESPACE normdiff::
    DESTINATION ${nd_config_dir} COMPONENT dev)
if(NORMDIFF_SHARED)
    install(TARGETS normdiff_shared EXPORT normdiffShared
        LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR} COMPONENT lib
        NAMELINK_COMPONENT dev)
    install(EXPORT normdiffShared NAMESPACE normdiff::
        DESTINATION ${nd_config_dir} COMPONENT dev)
endif()
install(DIRECTORY ${PROJECT_SOURCE_DIR}/include/normdiff
    DESTINATION ${CMAKE_INSTALL_INCLUDEDIR} COMPONENT dev)

configure_package_config_file(${CMAKE_CURRENT_LIST_DIR}/normdiffConfig.cmake.in
    ${PROJECT_BINARY_DIR}/normdiffConfig.cmake INSTALL_DESTINATION ${nd_config_dir})
# Before 1.0 a new minor version may change the interface.
write_basic_package_version_file(${PROJECT_BINARY_DIR}/normdiffConfigVersion.cmake
    COMPATIBILITY SameMinorVersion)
install(FILES ${PROJECT_BINARY_DIR}/normdiffConfig.cmake
    ${PROJECT_BINARY_DIR}/normdiffConfigVersion.cmake
    ${CMAKE_CURRENT_LIST_DIR}/FindCJSON.cmake
    DESTINATION ${nd_config_dir} COMPONENT dev)

# The .pc file finds its prefix from where it lies, so that an installed tree can be moved
# and staged; absolute directories leave it no such choice.
if(IS_ABSOLUTE "${CMAKE_INSTALL_LIBDIR}")
    set(pc_prefix ${CMAKE_INSTALL_PREFIX})
    set(pc_libdir ${CMAKE_INSTALL_LIBDIR})
else()
    file(RELATIVE_PATH nd_up
        ${CMAKE_INSTALL_FULL_LIBDIR}/pkgconfig ${CMAKE_INSTALL_PREFIX}/)
    string(REGEX REPLACE "/$" "" nd_up "${nd_up}")
    set(pc_prefix "\${pcfiledir}/${nd_up}")
    set(pc_libdir "\${prefix}/${CMAKE_INSTALL_LIBDIR}")
endif()
if(IS_ABSOLUTE "${CMAKE_INSTALL_INCLUDEDIR}")
    set(pc_includedir ${CMAKE_INSTALL_INCLUDEDIR})
else()
    set(pc_includedir "\${prefix}/${CMAKE_INSTALL_INCLUDEDIR}")
endif()
configure_file(${CMAKE_CURRENT_LIST_DIR}/normdiff.pc.in
    ${PROJECT_BINARY_DIR}/normdiff.pc @ONLY)
install(FILES ${PROJECT_BINARY_DIR}/normdiff.pc
    DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig COMPONENT dev)
