# cJSON ships a CMake package in some distributions and a pkg-config file in others; the
# header and the library are looked up directly, which works with both.
find_path(CJSON_INCLUDE_DIRS cjson/cJSON.h)
find_library(CJSON_LIBRARIES NAMES cjson)
if(NOT CJSON_INCLUDE_DIRS OR NOT CJSON_LIBRARIES)
    message(FATAL_ERROR "cJSON not found: install libcjson-dev (apt), cjson-devel (dnf) or cjson-dev (apk)")
endif()
