# SPDX-License-Identifier: Apache-2.0
# oneDNN: oneDNN::oneDNN. The library's own package file asks for what it was built with (OpenCL, say), which users of its C interface
# on the CPU do not need.
include(FindPackageHandleStandardArgs)

find_path(oneDNN_INCLUDE_DIR dnnl.h)
find_library(oneDNN_LIBRARY dnnl)
find_package_handle_standard_args(oneDNN REQUIRED_VARS oneDNN_LIBRARY oneDNN_INCLUDE_DIR)
if(oneDNN_FOUND AND NOT TARGET oneDNN::oneDNN)
  add_library(oneDNN::oneDNN UNKNOWN IMPORTED)
  set_target_properties(oneDNN::oneDNN PROPERTIES
    IMPORTED_LOCATION "${oneDNN_LIBRARY}" INTERFACE_INCLUDE_DIRECTORIES "${oneDNN_INCLUDE_DIR}")
endif()
mark_as_advanced(oneDNN_INCLUDE_DIR oneDNN_LIBRARY)
