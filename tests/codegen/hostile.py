# SPDX-License-Identifier: Apache-2.0 OR MIT
"""Legal .proto files with names that C would rather not have: words of the languages and their
headers in every place, and names that meet each other once they are C."""

import random
import re
import subprocess

from compiling import PRELUDE

# Of C up to 23, C++ up to 20, and GNU C.
KEYWORDS = """
alignas alignof and and_eq asm auto bitand bitor bool break case catch char char16_t char32_t
char8_t class co_await co_return co_yield compl concept const const_cast consteval constexpr
constinit continue decltype default delete do double dynamic_cast else enum explicit export extern
false float for friend goto if inline int long mutable namespace new noexcept not not_eq nullptr
operator or or_eq private protected public register reinterpret_cast requires restrict return short
signed sizeof static static_assert static_cast struct switch template this thread_local throw true
try typedef typeid typename typeof typeof_unqual union unsigned using virtual void volatile wchar_t
while xor xor_eq _Alignas _Alignof _Atomic _BitInt _Bool _Complex _Decimal128 _Decimal32 _Decimal64
_Float128 _Float16 _Float32 _Float32x _Float64 _Generic _Imaginary _Noreturn _Static_assert
_Thread_local __alignof__ __asm__ __attribute__ __auto_type __complex__ __const __extension__
__func__ __imag__ __inline __inline__ __int128 __label__ __real__ __restrict __restrict__ __thread
__typeof__ __volatile__
""".split()

# What gcc and clang take for operators, and for traits of types in C++, without a macro to show it.
OPERATORS = """
__array_extent __array_rank __bases __building_module __builtin_addressof __builtin_assoc_barrier
__builtin_available __builtin_bit_cast __builtin_call_with_static_chain __builtin_complex
__builtin_convertvector __builtin_has_attribute __builtin_launder __builtin_omp_required_simd_align
__builtin_shuffle __builtin_shufflevector __builtin_tgmath __char16_t __char32_t __constinit __direct_bases
__has_attribute __has_builtin __has_c_attribute __has_cpp_attribute __has_declspec_attribute __has_extension
__has_feature __has_include __has_include_next __has_nothrow_assign __has_nothrow_constructor
__has_nothrow_copy __has_nothrow_move_assign __has_trivial_assign __has_trivial_constructor __has_trivial_copy
__has_trivial_destructor __has_trivial_move_assign __has_trivial_move_constructor
__has_unique_object_representations __has_virtual_destructor __has_warning __is_abstract __is_aggregate
__is_array __is_assignable __is_complete_type __is_compound __is_const __is_constructible __is_convertible
__is_convertible_to __is_floating_point __is_function __is_fundamental __is_identifier __is_integral
__is_layout_compatible __is_literal __is_literal_type __is_lvalue_expr __is_lvalue_reference
__is_member_function_pointer __is_member_object_pointer __is_member_pointer __is_nothrow_assignable
__is_nothrow_constructible __is_object __is_pointer_interconvertible_base_of __is_polymorphic __is_reference
__is_rvalue_expr __is_rvalue_reference __is_same __is_same_as __is_standard_layout __is_target_arch
__is_target_environment __is_target_os __is_target_vendor __is_trivial __is_trivially_assignable
__is_trivially_constructible __is_trivially_copyable __is_trivially_destructible __is_unsigned __is_volatile
__objc_no __objc_yes __reference_binds_to_temporary __transaction_atomic __transaction_cancel
__transaction_relaxed
""".split()

# Types, functions and macros of headers, and what generated code itself is made of.
OTHERS = """
FILE DIR NULL EOF errno stdin stdout stderr assert offsetof major minor makedev linux unix i386 main
size_t ssize_t int8_t int32_t int64_t uint8_t uint32_t uint64_t intptr_t uintptr_t ptrdiff_t time_t
off_t pid_t protobuf_c_boolean protobuf_c_empty_string ProtobufCMessage ProtobufCBinaryData
ProtobufCAllocator ProtobufCService base descriptor init INIT pack unpack free_unpacked message data
len out allocator buffer call client server request reply user options events stream result status
handlers method methods service serve invoke file file_bytes file_messages file_imports fields info
memcpy malloc free printf exit abort signal time index log sin y0 j1 gamma div link read write open
close select _ __ ___ _1 _2a a_ _a __a a__ CASE NOT_SET not_set Bool Complex Generic Float32 LP64
default_value field_descriptors Closure value key
""".split()


def macros(cc, standard, language="c"):
    """Those without parameters that the compiler has after the prelude."""
    out = subprocess.run([*cc, f"-std={standard}", "-D_GNU_SOURCE", "-dM", "-E", "-x", language, str(PRELUDE)],
                         capture_output=True, text=True, check=True, timeout=300).stdout
    return set(re.findall(r"^#define ([A-Za-z_]\w*)(?= |$)", out, re.M))


def words(found):
    """With those macros that a name can become: no type has an underscore of its .proto in it, and no
    member a capital letter. The formats of inttypes.h are many, and alike."""
    plain = {word for word in found
             if re.fullmatch(r"[a-z][a-z0-9_]*|[A-Z][A-Za-z0-9]*", word) and not re.match(r"PRI[a-z]|SCN[a-z]", word)}
    return sorted({*KEYWORDS, *OPERATORS, *OTHERS, *plain, "PRId64"})


def packages_of(names):
    """As few as protoc takes: a package has up to 511 characters."""
    packages = [""]
    for name in names:
        if len(packages[-1]) + 1 + len(name) > 500:
            packages.append("")
        packages[-1] += ("." if packages[-1] else "") + name
    return packages


def of_words(names):
    """Name -> text of a file. Every word is a message, an enum, a value, a field of either kind, a oneof, a
    service and a method; some are packages."""
    files = {}
    lines = ['syntax = "proto2";', "message Request {}"]
    lines += [f"message {name} {{}}" for name in names if name != "Request"]
    files["hostile_messages.proto"] = lines
    files["hostile_enums.proto"] = ['syntax = "proto2";'] + [
        f"enum {name} {{ VALUE_{number} = {number}; }}" for number, name in enumerate(names)]
    files["hostile_values.proto"] = ['syntax = "proto2";', "enum V {"] + [
        f"  {name} = {number};" for number, name in enumerate(names) if name != "V"] + ["}"]
    # Their members: a field has one of its own, and one before it where it is repeated or optional.
    fields = ['syntax = "proto2";']
    for label in ("optional", "repeated"):
        for kind in ("int32", "string", "bytes", f".{label.capitalize()}Int32"):
            message = f"{label.capitalize()}{kind.lstrip('.').capitalize() if kind[0] != '.' else 'Itself'}"
            fields.append(f"message {message} {{")
            fields += [f"  {label} {kind} {name} = {number};" for number, name in enumerate(names, 1)
                       if not 19000 <= number < 20000]
            fields.append("}")
    files["hostile_fields.proto"] = fields
    files["hostile_oneofs.proto"] = ['syntax = "proto2";', "message Oneofs {"] + [
        f"  oneof {name} {{ int32 f{number} = {number}; }}" for number, name in enumerate(names, 1)] + [
        "}", "message One { oneof one {"] + [
        f"  int32 {name} = {number};" for number, name in enumerate(names, 1) if name != "one"] + ["} }"]
    files["hostile_services.proto"] = ['syntax = "proto2";', "package p;", "message Request {}"] + [
        f"service {name} {{ rpc {name}(.p.Request) returns (.p.Request); }}" for name in names
        if name not in ("Request", "p")]
    methods = ['syntax = "proto2";', "package q;", "message Request {}", "service Methods {"]
    for number, name in enumerate(names):
        asked = "stream " if number & 1 else ""
        told = "stream " if number & 2 else ""
        methods.append(f"  rpc {name}({asked}.q.Request) returns ({told}.q.Request);")
    files["hostile_methods.proto"] = methods + ["}"]
    for number, package in enumerate(packages_of(names)):
        files[f"hostile_package{number}.proto"] = [
            'syntax = "proto2";', f"package {package};", f"message M {{ optional .{package}.M m = 1; }}",
            f"service S {{ rpc Call(.{package}.M) returns (.{package}.M); }}"]
    return {name: "\n".join(text) + "\n" for name, text in files.items()}


PIECES = ["a", "A", "b", "aB", "a_b", "AB", "Ab", "a_B", "n_a", "has_a", "a_case", "aCase", "ACase", "base", "_", "_1",
          "__a", "a_", "case", "init", "Init", "descriptor", "Closure", "INIT", "int", "Int", "NOT_SET", "x1", "default"]
SCALARS = ["int32", "string", "bytes", "bool", "double", "uint64"]


class Meeting:
    """One file whose names are taken from few, so that they meet."""

    def __init__(self, seed):
        self.random = random.Random(seed)
        self.lines = ['syntax = "proto2";']
        self.values = 0
        self.types = []

    def pick(self, taken):
        free = [piece for piece in PIECES if piece not in taken]
        if not free:
            return None
        name = self.random.choice(free)
        taken.add(name)
        return name

    def field(self, indent, label, name, number):
        kind = self.random.choice(SCALARS + self.types)
        default = " [default = \"x\"]" if kind in ("string", "bytes") and label != "repeated " and \
            self.random.random() < 0.4 else ""
        self.lines.append(f"{indent}{label}{kind} {name} = {number}{default};")

    def enum(self, indent, name, scope):
        self.lines.append(f"{indent}enum {name} {{")
        for number in range(self.random.randint(1, 4)):
            value = self.pick(scope)
            if value is None or number == 0:
                self.values += 1
                value = value or f"V{self.values}"
            self.lines.append(f"{indent}  {value} = {number};")
        self.lines.append(f"{indent}}}")

    def message(self, indent, name, full, depth):
        taken, number = set(), 1
        self.lines.append(f"{indent}message {name} {{")
        self.types.append(full)
        for _ in range(self.random.randint(0, 8)):
            piece = self.pick(taken)
            what = self.random.random()
            if piece is None:
                break
            if what < 0.15 and depth < 3:
                self.message(indent + "  ", piece, f"{full}.{piece}", depth + 1)
            elif what < 0.25:
                self.enum(indent + "  ", piece, taken)
            elif what < 0.45:
                self.lines.append(f"{indent}  oneof {piece} {{")
                for _ in range(self.random.randint(1, 3)):
                    inner = self.pick(taken)
                    if inner is None:
                        inner, self.values = f"z{self.values}", self.values + 1
                    self.field(indent + "    ", "", inner, number)
                    number += 1
                self.lines.append(f"{indent}  }}")
            else:
                self.field(indent + "  ", self.random.choice(["optional ", "repeated ", "required "]), piece, number)
                number += 1
        self.lines.append(f"{indent}}}")

    def text(self):
        package = ".".join(self.random.choice(PIECES) for _ in range(self.random.randint(0, 2)))
        self.lines += [f"package {package};"] if package else []
        taken = {package.split(".")[0]}
        for _ in range(self.random.randint(2, 7)):
            piece = self.pick(taken)
            if self.random.random() < 0.25:
                self.enum("", piece, taken)
            else:
                self.message("", piece, f".{package}.{piece}" if package else f".{piece}", 0)
        for _ in range(self.random.randint(0, 2)):
            piece = self.pick(taken)
            if piece is None or not self.types:
                break
            self.lines.append(f"service {piece} {{")
            methods = set()
            for _ in range(self.random.randint(0, 6)):
                asked, told = (self.random.choice(["", "stream "]) for _ in "ab")
                one, other = self.random.choice(self.types), self.random.choice(self.types)
                self.lines.append(f"  rpc {self.pick(methods)}({asked}{one}) returns ({told}{other});")
            self.lines.append("}")
        return "\n".join(self.lines) + "\n"


def spelled(letters, number):
    """One of the ways to write a word for each letter, all of which are the same name in C."""
    return letters[0] + "".join(f"_{letter}" if number >> i & 1 else letter.upper()
                                for i, letter in enumerate(letters[1:]))


def of_meetings(seeds):
    return {f"meeting{seed}.proto": Meeting(seed).text() for seed in seeds}
