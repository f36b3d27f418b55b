# SPDX-License-Identifier: Apache-2.0
# find_package(weft) for the build tree and, with WEFT_INSTALL, for a prefix that can be moved; pkg-config files.
include(CMakePackageConfigHelpers)
include(GNUInstallDirs)

# Nothing in the package depends on the machine: it lies under share/.
set(weft_package_build_dir "${PROJECT_BINARY_DIR}/package")
set(weft_package_install_dir "${CMAKE_INSTALL_DATADIR}/cmake/weft")

# What the package file knows of the components: which there are, what they are built on, why one is absent.
set(weft_component_table "")
foreach(component IN LISTS weft_components)
  if(component IN_LIST weft_components_built)
    string(APPEND weft_component_table "weft_component(${component} ${weft_package_${component}} ${weft_target_${component}} \"${weft_library_${component}}\")\n")
  else()
    string(APPEND weft_component_table "weft_absent_component(${component} \"${weft_absence_${component}}\")\n")
  endif()
endforeach()

configure_package_config_file(cmake/weft-config.cmake.in "${weft_package_build_dir}/weft-config.cmake"
  INSTALL_DESTINATION "${weft_package_install_dir}" NO_SET_AND_CHECK_MACRO NO_CHECK_REQUIRED_COMPONENTS_MACRO)
# Until 1.0 a minor version may change interfaces.
write_basic_package_version_file("${weft_package_build_dir}/weft-config-version.cmake"
  VERSION "${PROJECT_VERSION}" COMPATIBILITY SameMinorVersion ARCH_INDEPENDENT)
file(COPY cmake/modules DESTINATION "${weft_package_build_dir}")

set(weft_exports weft ${weft_components_built})
foreach(export IN LISTS weft_exports)
  set(target weft_${export})
  set(file weft-${export}-targets)
  if(export STREQUAL "weft")
    set(target weft)
    set(file weft-targets)
  endif()
  set(device_set "")
  get_target_property(sets ${target} INTERFACE_HEADER_SETS)
  if("device_headers" IN_LIST sets)
    set(device_set FILE_SET device_headers)
  endif()
  install(TARGETS ${target} EXPORT ${file} FILE_SET HEADERS ${device_set})
  export(EXPORT ${file} NAMESPACE weft:: FILE "${weft_package_build_dir}/${file}.cmake")
  if(WEFT_INSTALL)
    install(EXPORT ${file} NAMESPACE weft:: DESTINATION "${weft_package_install_dir}")
  endif()
endforeach()

# pkg-config: weft.pc, and one file for each component that is built on it.
foreach(export IN LISTS weft_exports)
  if(export STREQUAL "weft")
    set(pc_name weft)
    set(pc_description "${PROJECT_DESCRIPTION}")
    set(pc_requires "")
    set(pc_cflags "-I\${includedir} -pthread")
    set(pc_libs "-pthread")
  else()
    string(TOUPPER "${export}" upper)
    set(pc_name "weft-${export}")
    set(pc_description "weft with ${weft_library_${export}}")
    list(JOIN weft_pkgconfig_requires_${export} ", " requires)
    set(pc_requires "weft = ${PROJECT_VERSION}")
    if(requires)
      string(APPEND pc_requires ", ${requires}")
    endif()
    set(pc_cflags "-DWEFT_HAS_${upper}=1")
    list(JOIN weft_pkgconfig_libs_${export} " " pc_libs)
  endif()
  configure_file(cmake/weft.pc.in "${weft_package_build_dir}/pkgconfig/${pc_name}.pc" @ONLY)
endforeach()

if(WEFT_INSTALL)
  install(FILES "${weft_package_build_dir}/weft-config.cmake" "${weft_package_build_dir}/weft-config-version.cmake"
          DESTINATION "${weft_package_install_dir}")
  install(DIRECTORY cmake/modules DESTINATION "${weft_package_install_dir}")
  install(DIRECTORY "${weft_package_build_dir}/pkgconfig" DESTINATION "${CMAKE_INSTALL_DATADIR}")
  install(FILES LICENSE DESTINATION "${CMAKE_INSTALL_DATADIR}/doc/weft")
endif()
