/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * Words that a name of ours cannot be. The macros are those that gcc 12 and clang 14 define by
 * themselves on x86, in their strict and in their GNU modes, and those of glibc 2.36's headers,
 * save complex.h, tgmath.h, termios.h and sys/ioctl.h, which hardly any program includes
 * beside its messages. tests/codegen/hostile_test.py holds the lists to the compilers.
 *
 * Each list is sorted by its bytes: it is searched by halves.
 */

#include "codegen/names_reserved.h"

#include <stdlib.h>
#include <string.h>

/* clang-format off */

/* What protoc-gen-c takes for a keyword in a field's name. */
static const char *const cpp_keywords[] = {
    "and", "and_eq", "asm", "auto", "bitand", "bitor", "bool", "break", "case", "catch", "char",
    "class", "compl", "const", "const_cast", "continue", "default", "delete", "do", "double",
    "dynamic_cast", "else", "enum", "explicit", "extern", "false", "float", "for", "friend", "goto",
    "if", "inline", "int", "long", "mutable", "namespace", "new", "not", "not_eq", "operator", "or",
    "or_eq", "private", "protected", "public", "register", "reinterpret_cast", "return", "short",
    "signed", "sizeof", "static", "static_cast", "struct", "switch", "template", "this", "throw",
    "true", "try", "typedef", "typeid", "typename", "union", "unsigned", "using", "virtual", "void",
    "volatile", "wchar_t", "while", "xor", "xor_eq",
};

/* Keywords of C up to 23 and of C++ up to 20 that the list above lacks, those of GNU C, types of
 * the C library and of libprotobuf-c that are written like a message's, and those that the emitted
 * structs use: C++ lets no member take the name of a type that its struct has named. */
static const char *const other_keywords[] = {
    "ACTION", "DIR", "ENTRY", "FILE", "ProtobufCAllocator", "ProtobufCBinaryData",
    "ProtobufCBuffer", "ProtobufCBufferSimple", "ProtobufCClosure", "ProtobufCEnumDescriptor",
    "ProtobufCEnumValue", "ProtobufCEnumValueIndex", "ProtobufCFieldDescriptor",
    "ProtobufCFieldFlag", "ProtobufCIntRange", "ProtobufCLabel", "ProtobufCMessage",
    "ProtobufCMessageDescriptor", "ProtobufCMessageInit", "ProtobufCMessageUnknownField",
    "ProtobufCMethodDescriptor", "ProtobufCService", "ProtobufCServiceDescriptor",
    "ProtobufCServiceDestroy", "ProtobufCType", "ProtobufCWireType", "VISIT", "_Accum", "_Alignas",
    "_Alignof", "_Atomic", "_BitInt", "_Bool", "_Complex", "_Decimal128", "_Decimal32",
    "_Decimal64", "_Float128", "_Float128x", "_Float16", "_Float32", "_Float32x", "_Float64",
    "_Float64x", "_Fract", "_Generic", "_Imaginary", "_Noreturn", "_Pragma", "_Sat", "__alignof",
    "__alignof__", "__array_extent", "__array_rank", "__asm", "__asm__", "__attribute",
    "__attribute__", "__auto_type", "__bases", "__bf16", "__block", "__bool", "__building_module",
    "__builtin_addressof", "__builtin_assoc_barrier", "__builtin_available", "__builtin_bit_cast",
    "__builtin_call_with_static_chain", "__builtin_choose_expr", "__builtin_complex",
    "__builtin_convertvector", "__builtin_has_attribute", "__builtin_launder", "__builtin_offsetof",
    "__builtin_omp_required_simd_align", "__builtin_shuffle", "__builtin_shufflevector",
    "__builtin_tgmath", "__builtin_types_compatible_p", "__builtin_va_arg", "__builtin_va_list",
    "__char16_t", "__char32_t", "__complex", "__complex__", "__const", "__const__", "__constinit",
    "__decltype", "__direct_bases", "__extension__", "__float128", "__float80", "__fp16",
    "__func__", "__has_attribute", "__has_builtin", "__has_c_attribute", "__has_cpp_attribute",
    "__has_declspec_attribute", "__has_extension", "__has_feature", "__has_include",
    "__has_include_next", "__has_nothrow_assign", "__has_nothrow_constructor", "__has_nothrow_copy",
    "__has_nothrow_move_assign", "__has_trivial_assign", "__has_trivial_constructor",
    "__has_trivial_copy", "__has_trivial_destructor", "__has_trivial_move_assign",
    "__has_trivial_move_constructor", "__has_unique_object_representations",
    "__has_virtual_destructor", "__has_warning", "__ibm128", "__imag", "__imag__", "__inline",
    "__inline__", "__int128", "__int128_t", "__is_abstract", "__is_aggregate", "__is_array",
    "__is_assignable", "__is_base_of", "__is_class", "__is_complete_type", "__is_compound",
    "__is_const", "__is_constructible", "__is_convertible", "__is_convertible_to", "__is_empty",
    "__is_enum", "__is_final", "__is_floating_point", "__is_function", "__is_fundamental",
    "__is_identifier", "__is_integral", "__is_layout_compatible", "__is_literal",
    "__is_literal_type", "__is_lvalue_expr", "__is_lvalue_reference",
    "__is_member_function_pointer", "__is_member_object_pointer", "__is_member_pointer",
    "__is_nothrow_assignable", "__is_nothrow_constructible", "__is_object", "__is_pod",
    "__is_pointer_interconvertible_base_of", "__is_polymorphic", "__is_reference",
    "__is_rvalue_expr", "__is_rvalue_reference", "__is_same", "__is_same_as",
    "__is_standard_layout", "__is_target_arch", "__is_target_environment", "__is_target_os",
    "__is_target_vendor", "__is_trivial", "__is_trivially_assignable",
    "__is_trivially_constructible", "__is_trivially_copyable", "__is_trivially_destructible",
    "__is_union", "__is_unsigned", "__is_volatile", "__label__", "__null", "__nullptr", "__objc_no",
    "__objc_yes", "__pixel", "__real", "__real__", "__reference_binds_to_temporary", "__restrict",
    "__restrict__", "__signed", "__signed__", "__strong", "__thread", "__transaction_atomic",
    "__transaction_cancel", "__transaction_relaxed", "__typeof", "__typeof__", "__uint128_t",
    "__underlying_type", "__unused", "__vector", "__volatile", "__volatile__", "__wchar_t",
    "__weak", "alignas", "alignof", "char16_t", "char32_t", "char8_t", "co_await", "co_return",
    "co_yield", "concept", "consteval", "constexpr", "constinit", "decltype", "export", "int32_t",
    "int64_t", "noexcept", "nullptr", "protobuf_c_boolean", "requires", "restrict", "size_t",
    "static_assert", "thread_local", "typeof", "typeof_unqual", "uint32_t", "uint64_t", "uint8_t",
};

/* Macros without parameters. */
static const char *const macros[] = {
    "ACCESSPERMS", "ALLPERMS", "BUFSIZ", "CANBSIZ", "CSIGNAL", "DEFFILEMODE", "E2BIG", "EACCES",
    "EADDRINUSE", "EADDRNOTAVAIL", "EADV", "EAFNOSUPPORT", "EAGAIN", "EALREADY", "EBADE", "EBADF",
    "EBADFD", "EBADMSG", "EBADR", "EBADRQC", "EBADSLT", "EBFONT", "EBUSY", "ECANCELED", "ECHILD",
    "ECHRNG", "ECOMM", "ECONNABORTED", "ECONNREFUSED", "ECONNRESET", "EDEADLK", "EDEADLOCK",
    "EDESTADDRREQ", "EDOM", "EDOTDOT", "EDQUOT", "EEXIST", "EFAULT", "EFBIG", "EHOSTDOWN",
    "EHOSTUNREACH", "EHWPOISON", "EIDRM", "EILSEQ", "EINPROGRESS", "EINTR", "EINVAL", "EIO",
    "EISCONN", "EISDIR", "EISNAM", "EKEYEXPIRED", "EKEYREJECTED", "EKEYREVOKED", "EL2HLT",
    "EL2NSYNC", "EL3HLT", "EL3RST", "ELIBACC", "ELIBBAD", "ELIBEXEC", "ELIBMAX", "ELIBSCN",
    "ELNRNG", "ELOOP", "EMEDIUMTYPE", "EMFILE", "EMLINK", "EMSGSIZE", "EMULTIHOP", "ENAMETOOLONG",
    "ENAVAIL", "ENETDOWN", "ENETRESET", "ENETUNREACH", "ENFILE", "ENOANO", "ENOBUFS", "ENOCSI",
    "ENODATA", "ENODEV", "ENOENT", "ENOEXEC", "ENOKEY", "ENOLCK", "ENOLINK", "ENOMEDIUM", "ENOMEM",
    "ENOMSG", "ENONET", "ENOPKG", "ENOPROTOOPT", "ENOSPC", "ENOSR", "ENOSTR", "ENOSYS", "ENOTBLK",
    "ENOTCONN", "ENOTDIR", "ENOTEMPTY", "ENOTNAM", "ENOTRECOVERABLE", "ENOTSOCK", "ENOTSUP",
    "ENOTTY", "ENOTUNIQ", "ENXIO", "EOF", "EOPNOTSUPP", "EOVERFLOW", "EOWNERDEAD", "EPERM",
    "EPFNOSUPPORT", "EPIPE", "EPOLLERR", "EPOLLET", "EPOLLEXCLUSIVE", "EPOLLHUP", "EPOLLIN",
    "EPOLLMSG", "EPOLLONESHOT", "EPOLLOUT", "EPOLLPRI", "EPOLLRDBAND", "EPOLLRDHUP", "EPOLLRDNORM",
    "EPOLLWAKEUP", "EPOLLWRBAND", "EPOLLWRNORM", "EPROTO", "EPROTONOSUPPORT", "EPROTOTYPE",
    "ERANGE", "EREMCHG", "EREMOTE", "EREMOTEIO", "ERESTART", "ERFKILL", "EROFS", "ESHUTDOWN",
    "ESOCKTNOSUPPORT", "ESPIPE", "ESRCH", "ESRMNT", "ESTALE", "ESTRPIPE", "ETIME", "ETIMEDOUT",
    "ETOOMANYREFS", "ETXTBSY", "EUCLEAN", "EUNATCH", "EUSERS", "EWOULDBLOCK", "EXDEV", "EXFULL",
    "FAPPEND", "FASYNC", "FFSYNC", "FIOGETOWN", "FIOSETOWN", "FNDELAY", "FNONBLOCK", "HZ",
    "INFINITY", "MAXFLOAT", "MAXHOSTNAMELEN", "MAXNAMLEN", "MAXPATHLEN", "MAXSYMLINKS",
    "MINSIGSTKSZ", "NAN", "NBBY", "NCARGS", "NFDBITS", "NGREG", "NGROUPS", "NODEV", "NOFILE",
    "NOGROUP", "NSIG", "NULL", "NZERO", "POLLERR", "POLLHUP", "POLLIN", "POLLMSG", "POLLNVAL",
    "POLLOUT", "POLLPRI", "POLLRDBAND", "POLLRDHUP", "POLLRDNORM", "POLLREMOVE", "POLLWRBAND",
    "POLLWRNORM", "PRIO_MAX", "PRIO_MIN", "PRIO_PGRP", "PRIO_PROCESS", "PRIO_USER", "PRIX16",
    "PRIX32", "PRIX64", "PRIX8", "PRIXFAST16", "PRIXFAST32", "PRIXFAST64", "PRIXFAST8",
    "PRIXLEAST16", "PRIXLEAST32", "PRIXLEAST64", "PRIXLEAST8", "PRIXMAX", "PRIXPTR", "PRId16",
    "PRId32", "PRId64", "PRId8", "PRIdFAST16", "PRIdFAST32", "PRIdFAST64", "PRIdFAST8",
    "PRIdLEAST16", "PRIdLEAST32", "PRIdLEAST64", "PRIdLEAST8", "PRIdMAX", "PRIdPTR", "PRIi16",
    "PRIi32", "PRIi64", "PRIi8", "PRIiFAST16", "PRIiFAST32", "PRIiFAST64", "PRIiFAST8",
    "PRIiLEAST16", "PRIiLEAST32", "PRIiLEAST64", "PRIiLEAST8", "PRIiMAX", "PRIiPTR", "PRIo16",
    "PRIo32", "PRIo64", "PRIo8", "PRIoFAST16", "PRIoFAST32", "PRIoFAST64", "PRIoFAST8",
    "PRIoLEAST16", "PRIoLEAST32", "PRIoLEAST64", "PRIoLEAST8", "PRIoMAX", "PRIoPTR", "PRIu16",
    "PRIu32", "PRIu64", "PRIu8", "PRIuFAST16", "PRIuFAST32", "PRIuFAST64", "PRIuFAST8",
    "PRIuLEAST16", "PRIuLEAST32", "PRIuLEAST64", "PRIuLEAST8", "PRIuMAX", "PRIuPTR", "PRIx16",
    "PRIx32", "PRIx64", "PRIx8", "PRIxFAST16", "PRIxFAST32", "PRIxFAST64", "PRIxFAST8",
    "PRIxLEAST16", "PRIxLEAST32", "PRIxLEAST64", "PRIxLEAST8", "PRIxMAX", "PRIxPTR",
    "PROTOBUF_C__API", "PROTOBUF_C__BEGIN_DECLS", "PROTOBUF_C__DEPRECATED", "PROTOBUF_C__END_DECLS",
    "PROTOBUF_C__ENUM_DESCRIPTOR_MAGIC", "PROTOBUF_C__MESSAGE_DESCRIPTOR_MAGIC",
    "PROTOBUF_C__NO_DEPRECATED", "PROTOBUF_C__SERVICE_DESCRIPTOR_MAGIC", "SCNd16", "SCNd32",
    "SCNd64", "SCNd8", "SCNdFAST16", "SCNdFAST32", "SCNdFAST64", "SCNdFAST8", "SCNdLEAST16",
    "SCNdLEAST32", "SCNdLEAST64", "SCNdLEAST8", "SCNdMAX", "SCNdPTR", "SCNi16", "SCNi32", "SCNi64",
    "SCNi8", "SCNiFAST16", "SCNiFAST32", "SCNiFAST64", "SCNiFAST8", "SCNiLEAST16", "SCNiLEAST32",
    "SCNiLEAST64", "SCNiLEAST8", "SCNiMAX", "SCNiPTR", "SCNo16", "SCNo32", "SCNo64", "SCNo8",
    "SCNoFAST16", "SCNoFAST32", "SCNoFAST64", "SCNoFAST8", "SCNoLEAST16", "SCNoLEAST32",
    "SCNoLEAST64", "SCNoLEAST8", "SCNoMAX", "SCNoPTR", "SCNu16", "SCNu32", "SCNu64", "SCNu8",
    "SCNuFAST16", "SCNuFAST32", "SCNuFAST64", "SCNuFAST8", "SCNuLEAST16", "SCNuLEAST32",
    "SCNuLEAST64", "SCNuLEAST8", "SCNuMAX", "SCNuPTR", "SCNx16", "SCNx32", "SCNx64", "SCNx8",
    "SCNxFAST16", "SCNxFAST32", "SCNxFAST64", "SCNxFAST8", "SCNxLEAST16", "SCNxLEAST32",
    "SCNxLEAST64", "SCNxLEAST8", "SCNxMAX", "SCNxPTR", "SIGABRT", "SIGALRM", "SIGBUS", "SIGCHLD",
    "SIGCLD", "SIGCONT", "SIGFPE", "SIGHUP", "SIGILL", "SIGINT", "SIGIO", "SIGIOT", "SIGKILL",
    "SIGPIPE", "SIGPOLL", "SIGPROF", "SIGPWR", "SIGQUIT", "SIGRTMAX", "SIGRTMIN", "SIGSEGV",
    "SIGSTKFLT", "SIGSTKSZ", "SIGSTOP", "SIGSYS", "SIGTERM", "SIGTRAP", "SIGTSTP", "SIGTTIN",
    "SIGTTOU", "SIGURG", "SIGUSR1", "SIGUSR2", "SIGVTALRM", "SIGWINCH", "SIGXCPU", "SIGXFSZ",
    "SIOCATMARK", "SIOCGPGRP", "SIOCSPGRP", "SNAN", "SNANF", "SNANF128", "SNANF32", "SNANF32X",
    "SNANF64", "SNANF64X", "SNANL", "SOMAXCONN", "WCONTINUED", "WCOREFLAG", "WEOF", "WEXITED",
    "WNOHANG", "WNOWAIT", "WSTOPPED", "WUNTRACED", "_", "_Bool", "_COMPARE", "_ILP32", "_IOFBF",
    "_IOLBF", "_IONBF", "_LP64", "_NEW", "_NSIG", "__aligned_be64", "__aligned_le64",
    "__aligned_s64", "__aligned_u64", "__always_inline", "__amd64", "__amd64__",
    "__attr_dealloc_fclose", "__attr_dealloc_free", "__attribute_artificial__",
    "__attribute_const__", "__attribute_deprecated__", "__attribute_malloc__",
    "__attribute_maybe_unused__", "__attribute_noinline__", "__attribute_nonstring__",
    "__attribute_pure__", "__attribute_returns_twice__", "__attribute_used__",
    "__attribute_warn_unused_result__", "__bitwise", "__bitwise__", "__clang__",
    "__clang_literal_encoding__", "__clang_major__", "__clang_minor__", "__clang_patchlevel__",
    "__clang_version__", "__clang_wide_literal_encoding__", "__cleanup_fct_attribute",
    "__code_model_small__", "__cplusplus", "__extern_always_inline", "__extern_inline", "__flexarr",
    "__fortify_function", "__gnu_linux__", "__gwchar_t", "__i386", "__i386__", "__i686", "__i686__",
    "__k8", "__k8__", "__kernel_old_dev_t", "__kernel_old_uid_t", "__linux", "__linux__",
    "__llvm__", "__need___va_list", "__pentiumpro", "__pentiumpro__", "__pic__", "__pie__",
    "__private_extern__", "__ptr_t", "__restrict_arr", "__returns_nonnull", "__sched_priority",
    "__seg_fs", "__seg_gs", "__size_t", "__size_t__", "__ss_aligntype", "__throw_exception_again",
    "__try", "__tune_i686__", "__tune_k8__", "__tune_pentiumpro__", "__unix", "__unix__",
    "__va_list__", "__wchar_t__", "__wur", "__x86_64", "__x86_64__", "d_fileno", "d_ino", "errno",
    "fscanf", "fwscanf", "h_addr", "h_errno", "i386", "linux", "math_errhandling", "noreturn",
    "s6_addr", "s6_addr16", "s6_addr32", "sa_handler", "sa_sigaction", "scanf", "sched_priority",
    "si_addr", "si_addr_lsb", "si_arch", "si_band", "si_call_addr", "si_fd", "si_int", "si_lower",
    "si_overrun", "si_pid", "si_pkey", "si_ptr", "si_status", "si_stime", "si_syscall",
    "si_timerid", "si_uid", "si_upper", "si_utime", "si_value", "sigev_notify_attributes",
    "sigev_notify_function", "sscanf", "st_atime", "st_ctime", "st_mtime", "stderr", "stdin",
    "stdout", "strerror_r", "swscanf", "unix", "vfscanf", "vfwscanf", "vscanf", "vsscanf",
    "vswscanf", "vwscanf", "wscanf",
};

/* Macros with parameters: only a name that is called meets them. */
static const char *const called_macros[] = {
    "DTTOIF", "IFTODT", "MAX", "MIN", "WCOREDUMP", "WEXITSTATUS", "WIFCONTINUED", "WIFEXITED",
    "WIFSIGNALED", "WIFSTOPPED", "WSTOPSIG", "WTERMSIG", "_", "alloca", "assert", "assert_perror",
    "be16toh", "be32toh", "be64toh", "clrbit", "fpclassify", "fread_unlocked", "fwrite_unlocked",
    "howmany", "htobe16", "htobe32", "htobe64", "htole16", "htole32", "htole64", "htonl", "htons",
    "isalnum", "isalnum_l", "isalpha", "isalpha_l", "isascii", "isascii_l", "isblank", "isblank_l",
    "iscanonical", "isclr", "iscntrl", "iscntrl_l", "isdigit", "isdigit_l", "iseqsig", "isfinite",
    "isgraph", "isgraph_l", "isgreater", "isgreaterequal", "isinf", "isless", "islessequal",
    "islessgreater", "islower", "islower_l", "isnan", "isnormal", "isprint", "isprint_l", "ispunct",
    "ispunct_l", "isset", "issignaling", "isspace", "isspace_l", "issubnormal", "isunordered",
    "isupper", "isupper_l", "isxdigit", "isxdigit_l", "iszero", "le16toh", "le32toh", "le64toh",
    "major", "makedev", "minor", "ntohl", "ntohs", "offsetof", "powerof2", "pthread_cleanup_pop",
    "pthread_cleanup_pop_restore_np", "pthread_cleanup_push", "pthread_cleanup_push_defer_np",
    "roundup", "setbit", "setjmp", "sigmask", "signbit", "sigsetjmp", "strdupa", "strndupa",
    "timeradd", "timerclear", "timercmp", "timerisset", "timersub", "toascii", "toascii_l",
    "tolower", "tolower_l", "toupper", "toupper_l", "va_arg", "va_copy", "va_end", "va_start",
};

/* clang-format on */

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

static int compare(const void *word, const void *element)
{
    return strcmp(word, *(const char *const *)element);
}

static bool is_among(const char *word, const char *const *words, size_t n_words)
{
    return bsearch(word, words, n_words, sizeof(*words), compare) != NULL;
}

bool names_is_reserved(const char *word)
{
    return is_among(word, cpp_keywords, COUNT(cpp_keywords)) ||
           is_among(word, other_keywords, COUNT(other_keywords)) ||
           is_among(word, macros, COUNT(macros)) || strncmp(word, "__cpp_", 6) == 0;
}

bool names_is_called_macro(const char *word)
{
    return is_among(word, called_macros, COUNT(called_macros));
}
