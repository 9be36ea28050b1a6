# NORMDIFF_SANITIZE=address,undefined: everything built and linked with these sanitizers.
if(NORMDIFF_SANITIZE)
    add_compile_options(-fsanitize=${NORMDIFF_SANITIZE} -fno-sanitize-recover=all
        -fno-omit-frame-pointer -g)
    add_link_options(-fsanitize=${NORMDIFF_SANITIZE})
endif()
# NORMDIFF_FUZZ=ON: all code counts what it reaches, so that libFuzzer can steer by it; only
# the fuzz_* programs link its main().
if(NORMDIFF_FUZZ)
    if(NOT CMAKE_C_COMPILER_ID MATCHES "Clang")
        message(FATAL_ERROR "NORMDIFF_FUZZ needs clang: libFuzzer is a part of it")
    endif()
    add_compile_options(-fsanitize=fuzzer-no-link)
    add_link_options(-fsanitize=fuzzer-no-link)
endif()
