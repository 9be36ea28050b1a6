# Installation: tool, libraries, headers.
install(TARGETS normdiff_tool RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR})
install(TARGETS normdiff ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR})
if(NORMDIFF_SHARED)
    install(TARGETS normdiff_shared LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR})
endif()
install(DIRECTORY include/normdiff DESTINATION ${CMAKE_INSTALL_INCLUDEDIR})
