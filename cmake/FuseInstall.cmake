# What `cmake --install` puts where. Everything is relative to the prefix, which may be moved afterwards. One build is
# static or shared (BUILD_SHARED_LIBS); two builds may be installed into one prefix.
# SPDX-License-Identifier: Apache-2.0
include(GNUInstallDirs)
include(CMakePackageConfigHelpers)

set(kind static)
if(BUILD_SHARED_LIBS)
  set(kind shared)
endif()
set(config_dir ${CMAKE_INSTALL_LIBDIR}/cmake/fuse-compiler)
# Debian's libfuse owns <includedir>/fuse.
set(headers_dir ${CMAKE_INSTALL_INCLUDEDIR}/fuse-compiler)

install(TARGETS fuse EXPORT fuse-compiler-${kind}
  LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR} COMPONENT runtime NAMELINK_COMPONENT development
  ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR} COMPONENT development
  INCLUDES DESTINATION ${headers_dir})
if(FUSE_COMPILER_RUNTIME)
  install(TARGETS fuse_runtime EXPORT fuse-compiler-${kind}
    LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR} COMPONENT runtime NAMELINK_COMPONENT development
    ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR} COMPONENT development
    INCLUDES DESTINATION ${headers_dir})
endif()
if(TARGET fusec)
  install(TARGETS fusec RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR} COMPONENT runtime)
endif()
install(DIRECTORY ${PROJECT_SOURCE_DIR}/include/fuse DESTINATION ${headers_dir} COMPONENT development
  FILES_MATCHING PATTERN "*.hpp" PATTERN "*.h" PATTERN "*.def")
install(FILES ${PROJECT_SOURCE_DIR}/LICENSE DESTINATION ${CMAKE_INSTALL_DOCDIR} COMPONENT runtime)

# find_package(fuse-compiler CONFIG)
install(EXPORT fuse-compiler-${kind} NAMESPACE fuse:: DESTINATION ${config_dir}
  FILE fuse-compiler-${kind}-targets.cmake COMPONENT development)
configure_package_config_file(${PROJECT_SOURCE_DIR}/cmake/fuse-compiler-config.cmake.in
  ${PROJECT_BINARY_DIR}/fuse-compiler-config.cmake INSTALL_DESTINATION ${config_dir}
  NO_SET_AND_CHECK_MACRO NO_CHECK_REQUIRED_COMPONENTS_MACRO)
write_basic_package_version_file(${PROJECT_BINARY_DIR}/fuse-compiler-config-version.cmake
  COMPATIBILITY SameMinorVersion)
install(FILES ${PROJECT_BINARY_DIR}/fuse-compiler-config.cmake
              ${PROJECT_BINARY_DIR}/fuse-compiler-config-version.cmake
  DESTINATION ${config_dir} COMPONENT development)

# pkg-config; its prefix is relative to the .pc file.
set(pc_private "-lfmt")
if(FUSE_COMPILER_HAS_EMULATED)
  string(APPEND pc_private " -lboost_context")
endif()
string(APPEND pc_private " -pthread -ldl")
file(RELATIVE_PATH pc_prefix ${CMAKE_INSTALL_FULL_LIBDIR}/pkgconfig ${CMAKE_INSTALL_PREFIX})
string(REGEX REPLACE "/$" "" pc_prefix ${pc_prefix})
file(RELATIVE_PATH pc_libdir ${CMAKE_INSTALL_PREFIX} ${CMAKE_INSTALL_FULL_LIBDIR})
file(RELATIVE_PATH pc_includedir ${CMAKE_INSTALL_PREFIX} ${CMAKE_INSTALL_FULL_INCLUDEDIR})
configure_file(${PROJECT_SOURCE_DIR}/cmake/fuse-compiler.pc.in ${PROJECT_BINARY_DIR}/fuse-compiler.pc @ONLY)
install(FILES ${PROJECT_BINARY_DIR}/fuse-compiler.pc DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig
  COMPONENT development)
