# SPDX-License-Identifier: Apache-2.0
# Weft's own programs: tests, examples, benchmarks. Nothing here is exported.

# Warnings and processor flags: for our programs, never for a user's.
add_library(weft_own INTERFACE)
target_compile_options(weft_own INTERFACE -Wall -Wextra -Wpedantic -Wshadow -Wconversion
  $<$<BOOL:${WEFT_WERROR}>:-Werror> $<$<BOOL:${WEFT_NATIVE}>:-march=native>)
# g++ 12 sees overlapping copies in std::string's own operator+ (GCC bug 105651).
if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU" AND CMAKE_CXX_COMPILER_VERSION VERSION_LESS 13)
  target_compile_options(weft_own INTERFACE -Wno-restrict)
endif()

# weft_skip("what, and why"): is listed at the end of the configuration.
function(weft_skip line)
  set_property(GLOBAL APPEND PROPERTY weft_skipped "${line}")
endfunction()

# Includes of other libraries, and who provides them: prefix of the include, package, target.
set(weft_providers
  "CLI/|CLI11|CLI11::CLI11"
  "benchmark/|benchmark|benchmark::benchmark"
  "nlohmann/|nlohmann_json|nlohmann_json::nlohmann_json"
  "zlib.h|ZLIB|ZLIB::ZLIB"
  "cblas.h|CBLAS|CBLAS::CBLAS"
  "dnnl.h|oneDNN|oneDNN::oneDNN")

# What a source file needs beyond the core, read off its #include lines and those of files beside it: targets to link, and the names of
# those that are missing. A file that asks for WEFT_HAS_NAME or uses __has_include does without what is missing.
function(weft_scan_includes file targets_out missing_out)
  set(queue "${file}")
  set(seen "")
  set(targets "")
  set(missing "")
  while(queue)
    list(POP_FRONT queue source)
    if(source IN_LIST seen)
      continue()
    endif()
    list(APPEND seen "${source}")
    file(READ "${source}" text)
    get_filename_component(folder "${source}" DIRECTORY)
    string(REGEX MATCHALL "#[ ]*include[ ]*[<\"][^>\"\n]+[>\"]" includes "${text}")
    foreach(include IN LISTS includes)
      string(REGEX REPLACE ".*[<\"](.*)[>\"]" "\\1" path "${include}")
      foreach(base IN ITEMS "${folder}" "${PROJECT_SOURCE_DIR}/tests")
        if(include MATCHES "\"" AND EXISTS "${base}/${path}")
          list(APPEND queue "${base}/${path}")
          break()
        endif()
      endforeach()
      set(needed "")
      foreach(component IN LISTS weft_components)
        foreach(header IN LISTS weft_headers_${component})
          string(FIND "${path}" "weft/${header}" position)
          if(position EQUAL 0)
            set(needed "weft::${component}")
            set(name "${weft_library_${component}}")
            string(TOUPPER "WEFT_HAS_${component}" macro)
          endif()
        endforeach()
      endforeach()
      foreach(row IN LISTS weft_providers)
        string(REPLACE "|" ";" row "${row}")
        list(GET row 0 prefix)
        string(FIND "${path}" "${prefix}" position)
        if(position EQUAL 0)
          list(GET row 1 name)
          list(GET row 2 needed)
          set(macro "__has_include")
          weft_find_package(${name} ${needed})
        endif()
      endforeach()
      if(NOT needed)
        continue()
      endif()
      if(TARGET ${needed})
        list(APPEND targets ${needed})
      elseif(NOT text MATCHES "${macro}|__has_include")
        list(APPEND missing "${name}")
      endif()
    endforeach()
  endwhile()
  list(REMOVE_DUPLICATES targets)
  list(REMOVE_DUPLICATES missing)
  set(${targets_out} "${targets}" PARENT_SCOPE)
  set(${missing_out} "${missing}" PARENT_SCOPE)
endfunction()

# weft_add_program(name sources…): an executable of ours from those sources whose libraries are there. The others are said to be skipped;
# without any source left there is no target.
function(weft_add_program name)
  set(sources "")
  set(libraries "")
  foreach(source IN LISTS ARGN)
    weft_scan_includes("${source}" targets missing)
    if(missing)
      list(JOIN missing ", " missing)
      cmake_path(RELATIVE_PATH source BASE_DIRECTORY "${PROJECT_SOURCE_DIR}" OUTPUT_VARIABLE relative)
      weft_skip("${relative}: needs ${missing}")
    else()
      list(APPEND sources "${source}")
      list(APPEND libraries ${targets})
    endif()
  endforeach()
  if(sources)
    list(REMOVE_DUPLICATES libraries)
    add_executable(${name} ${sources})
    target_link_libraries(${name} PRIVATE weft weft_own ${libraries})
  endif()
endfunction()
