# cJSON::cJSON.  Some distributions ship a CMake package for it, others a pkg-config file,
# some neither; the header and the library are looked up directly, which always works.
# Installed beside normdiffConfig.cmake for programs that link the static library.
find_path(CJSON_INCLUDE_DIRS cjson/cJSON.h)
find_library(CJSON_LIBRARIES NAMES cjson)
mark_as_advanced(CJSON_INCLUDE_DIRS CJSON_LIBRARIES)
if(NOT CJSON_INCLUDE_DIRS OR NOT CJSON_LIBRARIES)
    message(FATAL_ERROR "cJSON not found: install libcjson-dev (apt), cjson-devel (dnf) or cjson-dev (apk)")
endif()
if(NOT TARGET cJSON::cJSON)
    add_library(cJSON::cJSON UNKNOWN IMPORTED)
    set_target_properties(cJSON::cJSON PROPERTIES
        IMPORTED_LOCATION ${CJSON_LIBRARIES}
        INTERFACE_INCLUDE_DIRECTORIES ${CJSON_INCLUDE_DIRS})
endif()
