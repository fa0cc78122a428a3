# SPDX-License-Identifier: Apache-2.0 OR MIT
# bowline_generate(): from .proto files to C of a target. Owns the calls of protoc; which libraries there
# are is bowline-config.cmake's.
#
#   bowline_generate(TARGET target PROTOS a.proto ... [IMPORT_DIRS dir ...] [OPTIONS opt ...]
#                    [NO_IMPORTS] [NO_WKT])
#
# Generates the PROTOS and all that they import, over any number of steps, compiles them in `target`, a
# library or a program of this folder, and shows their headers to it and to who links it. The names of headers
# and imports begin below IMPORT_DIRS, which are looked through in their order; without any, below this folder.
# OPTIONS are those of --bowline_opt. With bowline::wkt Google's well-known types come from there.
# NO_IMPORTS: only the PROTOS, because another target that is linked has the rest.
# NO_WKT: generate Google's as well, and do not link bowline::wkt.
#
# How a change is noticed: which files there are is asked from the plugin when CMake runs, so CMake runs again when one
# of them changes. What one file's C depends on is told by protoc when it is generated.
cmake_policy(PUSH)
cmake_policy(VERSION 3.20)

# What libbowline-wkt has. In a function, for those are seen everywhere, and variables are not.
function(_bowline_wkt_stems ret_stems)
  set(stems any api duration empty field_mask source_context struct timestamp type wrappers)
  list(TRANSFORM stems PREPEND google/protobuf/)
  set(${ret_stems} "${stems}" PARENT_SCOPE)
endfunction()

# What cannot work is said before anything is run.
function(_bowline_check_generate target)
  if(NOT BOWLINE_PROTOC)
    message(FATAL_ERROR "bowline_generate: no protoc: install it (Debian: protobuf-compiler) or set BOWLINE_PROTOC")
  elseif(NOT TARGET bowline::protoc-gen-bowline)
    message(FATAL_ERROR "bowline_generate: no protoc-gen-bowline: put it on PATH or set BOWLINE_PLUGIN")
  elseif(NOT target OR NOT TARGET ${target})
    message(FATAL_ERROR "bowline_generate: TARGET is no target: '${target}'")
  endif()
  get_target_property(type ${target} TYPE)
  get_target_property(folder ${target} SOURCE_DIR)
  get_property(languages GLOBAL PROPERTY ENABLED_LANGUAGES)
  if(type STREQUAL "INTERFACE_LIBRARY")
    message(FATAL_ERROR "bowline_generate: '${target}' is an INTERFACE library, which compiles nothing")
  elseif(NOT folder STREQUAL CMAKE_CURRENT_SOURCE_DIR)
    message(FATAL_ERROR "bowline_generate: '${target}' is of ${folder}: call bowline_generate there")
  elseif(NOT "C" IN_LIST languages)
    message(FATAL_ERROR "bowline_generate: what is generated is C: say project(... LANGUAGES C CXX)")
  endif()
endfunction()

# Names of .proto files without their ending, as imports write them.
function(_bowline_list ret_stems scratch command options protos)
  list(APPEND options list)
  list(JOIN options "," options)
  file(MAKE_DIRECTORY "${scratch}")
  execute_process(
    COMMAND ${command} "--bowline_out=${scratch}" "--bowline_opt=${options}" ${protos}
    WORKING_DIRECTORY "${CMAKE_CURRENT_SOURCE_DIR}"
    RESULT_VARIABLE status ERROR_VARIABLE errors OUTPUT_VARIABLE errors)
  if(NOT status EQUAL 0)
    message(FATAL_ERROR "bowline_generate: protoc:\n${errors}")
  endif()
  file(STRINGS "${scratch}/bowline.files" stems REGEX "\\.pb-c\\.c$")
  list(TRANSFORM stems REPLACE "\\.pb-c\\.c$" "")
  set(${ret_stems} "${stems}" PARENT_SCOPE)
endfunction()

# Those .proto files that stand below `dirs`; protoc's own are not among them.
function(_bowline_find_protos ret_files stems dirs)
  set(files "")
  foreach(stem IN LISTS stems)
    foreach(dir IN LISTS dirs)
      if(EXISTS "${dir}/${stem}.proto")
        list(APPEND files "${dir}/${stem}.proto")
        break()
      endif()
    endforeach()
  endforeach()
  set(${ret_files} "${files}" PARENT_SCOPE)
endfunction()

# With header_prefix, Google's headers are named below the prefix as all others.
function(_bowline_forward_wkt out stems)
  foreach(stem IN LISTS stems)
    foreach(ending .pb-c.h .bow.h)
      file(CONFIGURE OUTPUT "${out}/${stem}${ending}" CONTENT "#include <${stem}${ending}>\n")
    endforeach()
  endforeach()
endfunction()

function(bowline_generate)
  cmake_parse_arguments(PARSE_ARGV 0 arg "NO_IMPORTS;NO_WKT" "TARGET" "PROTOS;IMPORT_DIRS;OPTIONS")
  if(arg_UNPARSED_ARGUMENTS)
    message(FATAL_ERROR "bowline_generate: what is '${arg_UNPARSED_ARGUMENTS}'?")
  elseif(NOT arg_PROTOS)
    message(FATAL_ERROR "bowline_generate: PROTOS is missing")
  endif()
  _bowline_check_generate("${arg_TARGET}")

  if(NOT arg_IMPORT_DIRS)
    set(arg_IMPORT_DIRS "${CMAKE_CURRENT_SOURCE_DIR}")
  endif()
  set(dirs "")
  foreach(dir IN LISTS arg_IMPORT_DIRS)
    get_filename_component(dir "${dir}" ABSOLUTE)
    list(APPEND dirs "${dir}")
  endforeach()
  # protoc finds a file's name below an import folder by comparing text.
  set(protos "")
  foreach(proto IN LISTS arg_PROTOS)
    get_filename_component(path "${proto}" ABSOLUTE)
    if(EXISTS "${path}")
      set(proto "${path}")
    endif()
    list(APPEND protos "${proto}")
  endforeach()

  get_target_property(plugin bowline::protoc-gen-bowline IMPORTED_LOCATION)
  get_target_property(proto_dir bowline::protoc-gen-bowline BOWLINE_PROTO_DIR)
  set(command "${BOWLINE_PROTOC}" "--plugin=protoc-gen-bowline=${plugin}")
  foreach(dir IN LISTS dirs)
    list(APPEND command "-I${dir}")
  endforeach()
  list(APPEND command "-I${proto_dir}")

  # Two targets may have the same .proto, with other options.
  set(gen "${CMAKE_CURRENT_BINARY_DIR}/bowline/${arg_TARGET}")
  set(list_options ${arg_OPTIONS})
  if(NOT arg_NO_IMPORTS)
    list(APPEND list_options imports)
  endif()
  _bowline_list(stems "${gen}.list" "${command}" "${list_options}" "${protos}")
  _bowline_find_protos(inputs "${stems}" "${dirs}")
  set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${inputs})

  set(out "${gen}")
  foreach(option IN LISTS arg_OPTIONS)
    if(option MATCHES "^header_prefix=(.*)$")
      set(out "${gen}/${CMAKE_MATCH_1}")
    endif()
  endforeach()
  if(TARGET bowline::wkt AND NOT arg_NO_WKT)
    _bowline_wkt_stems(wkt_stems)
    list(REMOVE_ITEM stems ${wkt_stems})
    target_link_libraries(${arg_TARGET} PUBLIC bowline::wkt)
    if(NOT out STREQUAL gen)
      _bowline_forward_wkt("${out}" "${wkt_stems}")
    endif()
  endif()

  set(options ${arg_OPTIONS})
  list(REMOVE_ITEM options imports)
  list(JOIN options "," options)

  # A second call for the same target adds what the first has not.
  get_target_property(known ${arg_TARGET} BOWLINE_GENERATED)
  foreach(stem IN LISTS stems)
    if(stem IN_LIST known)
      continue()
    endif()
    get_filename_component(folder "${out}/${stem}" DIRECTORY)
    # Sorted, as protoc tells them: ninja wants the same one first.
    set(files "${out}/${stem}.bow.c" "${out}/${stem}.bow.h" "${out}/${stem}.pb-c.c" "${out}/${stem}.pb-c.h")
    # protoc quotes nothing in what it tells: with a space in a path, each file depends on all.
    if("${out};${dirs}" MATCHES " ")
      set(told DEPENDS ${inputs} "${plugin}")
      set(tell "")
    else()
      set(told DEPENDS "${plugin}" DEPFILE "${out}/${stem}.d")
      set(tell "--dependency_out=${out}/${stem}.d")
    endif()
    # In a folder without any .proto, so that a name is only looked for below the import folders.
    add_custom_command(
      OUTPUT ${files}
      COMMAND "${CMAKE_COMMAND}" -E make_directory "${folder}"
      COMMAND ${command} "--bowline_out=${out}" "--bowline_opt=${options}" ${tell} "${stem}.proto"
      ${told}
      WORKING_DIRECTORY "${gen}.list"
      COMMENT "Generating C of ${stem}.proto"
      VERBATIM)
    target_sources(${arg_TARGET} PRIVATE ${files})
    set_property(TARGET ${arg_TARGET} APPEND PROPERTY BOWLINE_GENERATED "${stem}")
  endforeach()

  file(MAKE_DIRECTORY "${gen}")
  target_include_directories(${arg_TARGET} PUBLIC "$<BUILD_INTERFACE:${gen}>")
  target_link_libraries(${arg_TARGET} PUBLIC bowline::bowline)
endfunction()

cmake_policy(POP)
