use super::*;
use crate::adapter::adapter::AdapterKind;

const FOUR: Template = Template::new(&[], &[Group::four("X").loads().by_device(), Group::four("Y").stores()]);
const LANES: Template = Template::new(&[], &[Group::lane("X").loads(), Group::lane("Y").stores()]);
const ONE: Template = Template::new(&[], &[Group::one("X").loads(), Group::one("Y").stores()]);

/// The lines of the part that defines how groups are stored.
#[track_caller]
fn check(module: &Module, expected: &[&str]) {
    let text = module.parts()[0].text();
    assert_eq!(text.lines().collect::<Vec<_>>(), expected);
}

fn with_f16() -> Adapter {
    Adapter::new("sample", AdapterKind::Hardware).with_features(wgpu::Features::SHADER_F16)
}

#[test]
fn f32_is_stored_as_it_is_computed() {
    let expected = [
        "alias X = vec4f;",
        "fn load_x(v: X) -> vec4f { return v; }",
        "alias Y = vec4f;",
        "fn store_y(v: vec4f) -> Y { return v; }",
    ];
    for types in [&[][..], &[("X", DType::F32), ("Y", DType::F32)]] {
        check(&FOUR.module(types), &expected);
        assert_eq!(FOUR.module(types).parts().len(), 1, "no conversions");
    }
}

#[test]
fn each_group_has_a_type_of_its_own() {
    check(
        &FOUR.module(&[("X", DType::F16)]),
        &[
            "alias X = vec2u;",
            "fn load_x(v: X) -> vec4f { return vec4f(unpack_f16(v.x), unpack_f16(v.y)); }",
            "alias Y = vec4f;",
            "fn store_y(v: vec4f) -> Y { return v; }",
        ],
    );
    check(
        &FOUR.module(&[("Y", DType::Bf16)]),
        &[
            "alias X = vec4f;",
            "fn load_x(v: X) -> vec4f { return v; }",
            "alias Y = vec2u;",
            "fn store_y(v: vec4f) -> Y { return vec2u(pack_bf16(v.xy), pack_bf16(v.zw)); }",
        ],
    );
    assert!(FOUR.module(&[("Y", DType::Bf16)]).source().contains("fn pack_bf16("), "the functions that are called");
}

#[test]
fn lanes_of_one_float_become_lanes_of_two() {
    check(
        &LANES.module(&[("X", DType::Bf16), ("Y", DType::F32)]),
        &[
            "alias V = vec2f;",
            "alias U = vec2u;",
            "alias I = vec2i;",
            "alias Mask = vec2<bool>;",
            "alias X = u32;",
            "fn load_x(v: X) -> V { return unpack_bf16(v); }",
            "alias Y = V;",
            "fn store_y(v: V) -> Y { return v; }",
        ],
    );
    assert!(LANES.module(&[]).source().contains("alias V = f32;\nalias U = u32;"), "lanes of f32");
}

#[test]
fn elements_by_index_are_found_in_words() {
    check(
        &ONE.module(&[("X", DType::F16), ("Y", DType::Bf16)]),
        &[
            "alias X = u32;",
            "fn load_x(i: u32) -> f32 { let v = unpack_f16(x[i / 2u]); return select(v.x, v.y, (i & 1u) == 1u); }",
            "alias Y = u32;",
            "fn store_y(i: u32, v: vec2f, n: u32) { y[i / 2u] = pack_bf16(v); }",
        ],
    );
    check(
        &ONE.module(&[]),
        &[
            "alias X = f32;",
            "fn load_x(i: u32) -> f32 { return x[i]; }",
            "alias Y = f32;",
            "fn store_y(i: u32, v: vec2f, n: u32) { y[i] = v.x; if n > 1u { y[i + 1u] = v.y; } }",
        ],
    );
}

#[test]
fn a_device_with_f16_converts_only_what_it_may() {
    let types = [("X", DType::F16), ("Y", DType::F16)];
    let module = FOUR.module_on(&with_f16(), &types);
    check(
        &module,
        &[
            "alias X = vec4<f16>;",
            "fn load_x(v: X) -> vec4f { return vec4f(v); }",
            "alias Y = vec2u;",
            "fn store_y(v: vec4f) -> Y { return vec2u(pack_f16(v.xy), pack_f16(v.zw)); }",
        ],
    );
    assert!(module.source().starts_with("enable f16;\n"), "{}", module.source());
    let bf16 = FOUR.module_on(&with_f16(), &[("X", DType::Bf16)]);
    assert!(bf16.source().contains("alias X = vec2u;") && !bf16.source().contains("enable"), "{}", bf16.source());
}

#[test]
#[should_panic(expected = "is not a group of the module")]
fn a_type_for_no_group_is_a_mistake() {
    let _ = FOUR.module(&[("Z", DType::F16)]);
}
