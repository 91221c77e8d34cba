use std::borrow::Cow;

use super::*;
use crate::dtype::DType;
use crate::storage::stored_types::{Group, Template};

const STORED: Template = Template::new(
    &[Part { name: Cow::Borrowed("module"), text: Cow::Borrowed("fn f() {}"), loops_end: true }],
    &[Group::one("X").loads()],
);

fn args() -> [Arg; 3] {
    [Arg::read("x", DType::F32, 8), Arg::write("y", DType::F16, 4), Arg::scratch("parts", DType::U32, 4)]
}

#[test]
fn parameters_and_arguments_are_declared_in_the_order_of_their_bindings() {
    let dispatch = Dispatch::new("test.declared", "fn f() {}", [1, 1, 1])
        .param("n", 3_usize)
        .bind(&args(), [Binding::of("parts").named("sums").elements("vec2u"), "x".into()], ["y"])
        .expect("known arguments")
        .param("size", [4_usize, 5])
        .param("scale", -0.5_f32)
        .param("shift", -1_i32);
    let expected = "struct Params {
    n: u32,
    size: vec2u,
    scale: f32,
    shift: i32,
    pad0: u32,
    pad1: u32,
}
@group(0) @binding(0) var<uniform> params: Params;
@group(0) @binding(1) var<storage, read> sums: array<vec2u>;
@group(0) @binding(2) var<storage, read> x: array<f32>;
@group(0) @binding(3) var<storage, read_write> y: array<u32>;
";
    let parts: Vec<(&str, &str)> = dispatch.wgsl.parts().iter().map(|part| (part.name(), part.text())).collect();
    assert_eq!(parts, [("arguments", expected), ("module", "fn f() {}")]);
    assert_eq!((dispatch.reads, dispatch.writes), (vec![2, 0], vec![1]));
    let words: &[u32] = bytemuck::cast_slice(&dispatch.params);
    assert_eq!(words, [3, 0, 4, 5, (-0.5_f32).to_bits(), u32::MAX, 0, 0], "a pair starts at a multiple of 8 bytes");
}

#[test]
fn a_module_with_bindings_of_its_own_stays_as_it_is() {
    let dispatch = Dispatch::new("test.own", "fn f() {}", [1, 1, 1]).bind_declared(vec![0; 16], vec![0], vec![1]);
    assert_eq!(dispatch.wgsl, Module::from("fn f() {}"));
    assert_eq!((dispatch.params.len(), dispatch.reads, dispatch.writes), (16, vec![0], vec![1]));
}

#[test]
fn an_argument_that_the_kernel_lacks_is_refused() {
    let dispatch = || Dispatch::new("test.unknown", "", [1, 1, 1]);
    let by_name = dispatch().bind(&args(), ["x"], ["z"]).expect_err("no `z`");
    assert_eq!(by_name.to_string(), "test.unknown: there is no argument `z`; the kernel has x, y, parts");
    let by_index = dispatch().bind(&args(), [Binding::at(3)], ["y"]).expect_err("three arguments");
    assert_eq!(by_index.to_string(), "test.unknown: there is no argument `3`; the kernel has x, y, parts");
}

#[test]
fn sizes_beyond_u32_do_not_wrap() {
    let dispatch = Dispatch::new("test.size", "", [1, 1, 1]).param("n", usize::MAX);
    assert_eq!(bytemuck::cast_slice::<u8, u32>(&dispatch.params)[0], u32::MAX);
}

#[test]
fn groups_of_a_module_are_bound_by_their_types() {
    let dispatch = Dispatch::new("test.stored", STORED.module(&[("X", DType::F16)]), [1, 1, 1]);
    let dispatch = dispatch.bind(&args(), ["x"], [Binding::of("parts").named("y")]).expect("known arguments");
    let source = dispatch.wgsl.source();
    assert!(source.contains("x: array<X>;") && source.contains("y: array<u32>;"), "{source}");
}
