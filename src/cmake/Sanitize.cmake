# NORMDIFF_SANITIZE=address,undefined: everything built and linked with these sanitizers.
if(NORMDIFF_SANITIZE)
    add_compile_options(-fsanitize=${NORMDIFF_SANITIZE} -fno-sanitize-recover=all
        -fno-omit-frame-pointer -g)
    add_link_options(-fsanitize=${NORMDIFF_SANITIZE})
endif()
