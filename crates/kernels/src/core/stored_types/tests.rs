use super::*;

const FOUR: &str = "alias X = vec4f; // four at a time
fn load_x(v: X) -> vec4f { return v; }
alias Y = vec4f;
fn store_y(v: vec4f) -> Y { return v; }
";

fn dispatch(wgsl: &'static str, types: Vec<(&'static str, DType)>) -> Dispatch {
    Dispatch {
        label: "mine.kernel",
        wgsl,
        entry: "main",
        constants: vec![],
        types,
        params: vec![],
        reads: vec![],
        writes: vec![],
        workgroups: [1; 3],
    }
}

#[track_caller]
fn lines(wgsl: &'static str, types: Vec<(&'static str, DType)>) -> Vec<String> {
    let source = dispatch(wgsl, types).source(wgpu::Features::empty()).expect("groups that are there");
    source.lines().take(wgsl.lines().count()).map(str::to_owned).collect()
}

#[test]
fn f32_is_the_file_as_it_lies() {
    for types in [vec![], vec![("X", DType::F32), ("Y", DType::F32)]] {
        assert_eq!(dispatch(FOUR, types).source(wgpu::Features::empty()), Ok(Cow::Borrowed(FOUR)));
    }
}

#[test]
fn a_group_is_swapped_alone() {
    assert_eq!(
        lines(FOUR, vec![("X", DType::F16)]),
        [
            "alias X = vec2u; // four at a time",
            "fn load_x(v: X) -> vec4f { return vec4f(unpack_f16(v.x), unpack_f16(v.y)); }",
            "alias Y = vec4f;",
            "fn store_y(v: vec4f) -> Y { return v; }",
        ]
    );
    assert_eq!(
        lines(FOUR, vec![("Y", DType::Bf16)])[2..],
        ["alias Y = vec2u;", "fn store_y(v: vec4f) -> Y { return vec2u(pack_bf16(v.xy), pack_bf16(v.zw)); }"]
    );
}

#[test]
fn lanes_of_one_float_become_lanes_of_two() {
    let one = "alias V = f32;\nalias U = u32;\nalias X = V;\nalias Y = V;\nfn load_x(v: X) -> V { return v; }\n";
    assert_eq!(
        lines(one, vec![("X", DType::Bf16), ("Y", DType::F32)]),
        [
            "alias V = vec2f;",
            "alias U = vec2u;",
            "alias X = u32;",
            "alias Y = V;",
            "fn load_x(v: X) -> V { return unpack_bf16(v); }"
        ]
    );
}

#[test]
fn what_is_added_is_functions_alone() {
    assert!(conversions().contains("fn pack_bf16(v: vec2f)"), "the last function of them");
    assert!(!conversions().contains("@group") && !conversions().contains("override"), "nothing of the kernel itself");
}

#[test]
fn a_group_that_is_not_there_is_an_error() {
    let error = dispatch(FOUR, vec![("Z", DType::F16)]).source(wgpu::Features::empty()).expect_err("no Z");
    assert_eq!(
        error.to_string(),
        "mine.kernel: `Z` cannot be stored as F16, expected f32, f16 or bf16 for a group whose `alias Z =` is in the WGSL"
    );
    let error = dispatch(FOUR, vec![("X", DType::U8)]).source(wgpu::Features::empty());
    assert_eq!(error, Err(Error::StoredType { label: "mine.kernel", group: "X", dtype: DType::U8 }));
}

#[test]
fn elements_by_index_are_found_in_words() {
    let by_index = "alias X = f32;
fn load_x(i: u32) -> f32 { return x[i]; }
alias Y = f32;
fn store_y(i: u32, v: vec2f, n: u32) { y[i] = v.x; if n > 1u { y[i + 1u] = v.y; } }
";
    assert_eq!(
        lines(by_index, vec![("X", DType::F16), ("Y", DType::Bf16)]),
        [
            "alias X = u32;",
            "fn load_x(i: u32) -> f32 { let v = unpack_f16(x[i / 2u]); return select(v.x, v.y, (i & 1u) == 1u); }",
            "alias Y = u32;",
            "fn store_y(i: u32, v: vec2f, n: u32) { y[i / 2u] = pack_bf16(v); }",
        ]
    );
}

#[test]
fn numbers_that_the_device_may_convert_have_its_type() {
    let converted = "alias X = vec4f;
fn load_x(v: X) -> vec4f { return vec4f(v); }
alias TILE = vec4f;
fn store_tile(v: vec4f) -> TILE { return TILE(v); }
alias Y = vec4f;
fn store_y(v: vec4f) -> Y { return v; }
";
    let types = ["X", "TILE", "Y"].map(|group| (group, DType::F16)).to_vec();
    let source = dispatch(converted, types.clone()).source(wgpu::Features::SHADER_F16).expect("groups that are there");
    let expected = "enable f16;
alias X = vec4<f16>;
fn load_x(v: X) -> vec4f { return vec4f(v); }
alias TILE = vec4<f16>;
fn store_tile(v: vec4f) -> TILE { return TILE(v); }
alias Y = vec2u;
fn store_y(v: vec4f) -> Y { return vec2u(pack_f16(v.xy), pack_f16(v.zw)); }
";
    assert!(source.starts_with(expected), "{source}");
    assert_eq!(
        lines(converted, types),
        [
            "alias X = vec2u;",
            "fn load_x(v: X) -> vec4f { return vec4f(unpack_f16(v.x), unpack_f16(v.y)); }",
            "alias TILE = vec2u;",
            "fn store_tile(v: vec4f) -> TILE { return vec2u(pack_f16(v.xy), pack_f16(v.zw)); }",
            "alias Y = vec2u;",
            "fn store_y(v: vec4f) -> Y { return vec2u(pack_f16(v.xy), pack_f16(v.zw)); }",
        ]
    );
    let bf16 = dispatch(converted, vec![("X", DType::Bf16)]).source(wgpu::Features::SHADER_F16).expect("a group that is there");
    assert!(bf16.starts_with("alias X = vec2u;"), "{bf16}");
}
