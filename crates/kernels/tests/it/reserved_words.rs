//! No identifier of the WGSL is a word with a different meaning in HLSL, MSL or the tools that translate SPIR-V back.
//!
//! naga renames the identifiers that its own lists contain, and those lists lag behind the compilers: `dx` became a namespace of
//! HLSL in DXC 1.9, and naga 30 writes a binding of that name unchanged. So this list is checked twice: against the identifiers
//! of the WGSL, and against the names that the translated text declares.

use std::collections::{BTreeSet, HashMap};
use std::sync::LazyLock;

/// Each word, with what it is.
static WORDS: LazyLock<HashMap<&str, &str>> = LazyLock::new(|| {
    let lines = include_str!("reserved_words.txt").lines().filter(|line| !line.starts_with('#'));
    let mut words = HashMap::new();
    for line in lines {
        let (what, of) = line.split_once(": ").unwrap_or_else(|| panic!("`{line}` has no name before its words"));
        words.extend(of.split(' ').map(|word| (word, what)));
    }
    words
});

const GLSL: &str = "a word of GLSL";
const FXC_ANY_CASE: &str = "a keyword of FXC in any case";

/// Scalar types that HLSL or MSL combine with sizes, as in `float4` and `float4x4`.
const SCALARS: [&str; 27] = [
    "bool",
    "int",
    "uint",
    "dword",
    "half",
    "float",
    "double",
    "char",
    "uchar",
    "short",
    "ushort",
    "long",
    "ulong",
    "bfloat",
    "min10float",
    "min16float",
    "min12int",
    "min16int",
    "min16uint",
    "int16_t",
    "uint16_t",
    "int32_t",
    "uint32_t",
    "int64_t",
    "uint64_t",
    "float16_t",
    "float32_t",
];

/// Why `identifier` may not be used, if it may not.
fn reserved(identifier: &str) -> Option<&'static str> {
    // naga drops underscores at the end.
    let name = identifier.trim_end_matches('_');
    if name.contains("__") {
        return Some("reserved in GLSL and C++ for its two underscores");
    }
    if ["gl_", "spv", "naga_"].iter().any(|prefix| name.starts_with(prefix)) {
        return Some("of a prefix that SPIRV-Cross or naga keeps for itself");
    }
    if name.strip_prefix('_').is_some_and(|rest| rest.starts_with(|c: char| c.is_ascii_digit())) {
        return Some("what SPIRV-Cross calls a value without a name");
    }
    let of = |word: &str| WORDS.get(word).copied();
    let any_case = of(&name.to_ascii_lowercase()).filter(|what| *what == FXC_ANY_CASE);
    of(name).or(any_case).or_else(|| is_vector_or_matrix(name).then_some("a vector or matrix type of HLSL or MSL"))
}

fn is_vector_or_matrix(name: &str) -> bool {
    let name = name.strip_prefix("packed_").unwrap_or(name);
    let sizes = SCALARS.iter().filter_map(|scalar| name.strip_prefix(scalar));
    let is_size = |size: &str| matches!(size, "1" | "2" | "3" | "4");
    sizes
        .into_iter()
        .any(|sizes| is_size(sizes) || sizes.split_once('x').is_some_and(|(rows, cols)| is_size(rows) && is_size(cols)))
}

/// Every identifier of a module except its entry points, whose names are looked up in the result of naga.
fn identifiers(module: &naga::Module) -> BTreeSet<&str> {
    let mut names: BTreeSet<Option<&String>> = BTreeSet::new();
    names.extend(module.global_variables.iter().map(|(_, of)| of.name.as_ref()));
    names.extend(module.overrides.iter().map(|(_, of)| of.name.as_ref()));
    names.extend(module.constants.iter().map(|(_, of)| of.name.as_ref()));
    names.extend(module.functions.iter().map(|(_, of)| of.name.as_ref()));
    for (_, of) in module.types.iter() {
        names.insert(of.name.as_ref());
        if let naga::TypeInner::Struct { members, .. } = &of.inner {
            names.extend(members.iter().map(|member| member.name.as_ref()));
        }
    }
    let entries = module.entry_points.iter().map(|entry| &entry.function);
    for function in module.functions.iter().map(|(_, function)| function).chain(entries) {
        names.extend(function.arguments.iter().map(|of| of.name.as_ref()));
        names.extend(function.local_variables.iter().map(|(_, of)| of.name.as_ref()));
        names.extend(function.named_expressions.values().map(Some));
    }
    names.into_iter().flatten().map(String::as_str).collect()
}

/// The identifiers that `text`, HLSL or MSL, declares: the last of several consecutive words, as in `const uint n` or
/// `device Params& params`.
fn declared(text: &str) -> BTreeSet<&str> {
    /// Words that start a statement without a declaration.
    const STATEMENTS: [&str; 6] = ["return", "else", "case", "using", "typename", "new"];
    let is_word = |c: char| c.is_ascii_alphanumeric() || c == '_';
    let mut names = BTreeSet::new();
    for line in text.lines().filter(|line| !line.trim_start().starts_with('#')) {
        let mut rest = line.split("//").next().unwrap_or_default();
        let (mut first, mut n_words) = ("", 0);
        while let Some(start) = rest.find(is_word) {
            let between = &rest[..start];
            rest = &rest[start..];
            let len = rest.find(|c| !is_word(c)).unwrap_or(rest.len());
            let word = &rest[..len];
            rest = &rest[len..];
            if matches!(between, " " | "& " | "* ") && n_words > 0 {
                n_words += 1;
            } else {
                (first, n_words) = (word, 1);
            }
            let goes_on =
                [" ", "& ", "* "].iter().any(|gap| rest.strip_prefix(gap).is_some_and(|after| after.starts_with(is_word)));
            let is_name = word.starts_with(|c: char| !c.is_ascii_digit()) && !rest.starts_with("::");
            if n_words > 1 && !goes_on && is_name && !STATEMENTS.contains(&first) {
                names.insert(word);
            }
        }
    }
    names
}

/// What is wrong with the identifiers of `module`.
pub(crate) fn in_module(module: &naga::Module) -> Vec<String> {
    refused(identifiers(module))
}

/// What is wrong with the names that `text`, HLSL or MSL, declares. naga's helpers have their own names, which may be words of
/// GLSL.
pub(crate) fn in_text(text: &str) -> Vec<String> {
    let is_nagas = |name: &str| name.starts_with("naga_") || WORDS.get(name) == Some(&GLSL);
    refused(declared(text).into_iter().filter(|name| !is_nagas(name)).collect())
}

fn refused(names: BTreeSet<&str>) -> Vec<String> {
    names.into_iter().filter_map(|name| reserved(name).map(|what| format!("`{name}` is {what}"))).collect()
}

const BINDING_NAMED_DX: &str = "
    @group(0) @binding(0) var<storage, read_write> dx: array<f32>;
    @compute @workgroup_size(1)
    fn main() { dx[0] = 1.0; }
";

#[test]
fn a_binding_named_dx_is_refused() {
    let module = naga::front::wgsl::parse_str(BINDING_NAMED_DX).unwrap_or_else(|error| panic!("{error}"));
    assert_eq!(in_module(&module), ["`dx` is a namespace of HLSL"]);
}

#[test]
fn a_translation_that_declares_dx_is_refused() {
    assert_eq!(in_text("RWByteAddressBuffer dx : register(u0);\n"), ["`dx` is a namespace of HLSL"]);
    assert_eq!(in_text("kernel void main_(\n  device type_1& simd [[user(fake0)]]\n) {}"), ["`simd` is a namespace of MSL"]);
    assert_eq!(in_text("    const metal::uint3 Pass = metal::uint3(1);"), ["`Pass` is a keyword of FXC in any case"]);
    assert_eq!(in_text("using metal::uint;\n return metal::max(a, dx);\n float4 x = min(a, b); else if (x) {}"), [""; 0]);
}

#[test]
fn words_of_every_kind_are_reserved() {
    for word in [
        "dx",
        "dx_",
        "vk",
        "half",
        "float4x4",
        "int64_t3",
        "PASS",
        "sample",
        "kernel",
        "threadgroup",
        "metal",
        "gl_x",
        "a__b",
        "_12",
    ] {
        assert!(reserved(word).is_some(), "`{word}` is let through");
    }
    for word in ["x", "grad_x", "n_rows", "kernel_size", "spin", "float4x5"] {
        assert_eq!(reserved(word), None, "{word}");
    }
}
