# find_package(tidemark [COMPONENTS record plan trace]): tidemark::record, tidemark::plan, tidemark::trace, and
# tidemark::tidemark for all of them. See docs/embedding.md.
include("${CMAKE_CURRENT_LIST_DIR}/tidemark-targets.cmake")

foreach(part IN LISTS tidemark_FIND_COMPONENTS)
  set(tidemark_${part}_FOUND FALSE)
  if(TARGET tidemark::${part})
    set(tidemark_${part}_FOUND TRUE)
  elseif(tidemark_FIND_REQUIRED_${part})
    set(tidemark_FOUND FALSE)
    set(tidemark_NOT_FOUND_MESSAGE "tidemark has no component '${part}': they are record, plan and trace")
  endif()
endforeach()

if(NOT TARGET tidemark::tidemark)
  add_library(tidemark::tidemark INTERFACE IMPORTED)
  set_target_properties(tidemark::tidemark PROPERTIES
    INTERFACE_LINK_LIBRARIES "tidemark::record;tidemark::plan;tidemark::trace")
endif()
