# nd_sources_from_def(<var> <def> <pattern>): every NAME(word...) line of a table becomes a
# source file, <pattern> with @ replaced by the word.  Editing the table re-runs configure.
function(nd_sources_from_def var def pattern)
    set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${CMAKE_CURRENT_SOURCE_DIR}/${def})
    file(STRINGS ${def} lines REGEX "^ND_[A-Z_]+\\([a-z0-9_]+")
    set(sources)
    foreach(line IN LISTS lines)
        string(REGEX REPLACE "^ND_[A-Z_]+\\(([a-z0-9_]+).*" "\\1" word "${line}")
        string(REPLACE "@" "${word}" path "${pattern}")
        list(APPEND sources ${path})
    endforeach()
    set(${var} ${sources} PARENT_SCOPE)
endfunction()
