use super::*;

const SCALE: Part = Part { name: Cow::Borrowed("scale"), text: Cow::Borrowed("const SCALE = 2.0;\n\n") };
const OFFSET: Part = Part { name: Cow::Borrowed("offset"), text: Cow::Borrowed("const OFFSET = 1.0;") };

#[test]
fn parts_are_joined_in_order_under_their_names() {
    let module = Module::new([SCALE]).with(OFFSET);
    assert_eq!(module.source(), "// part: scale\nconst SCALE = 2.0;\n// part: offset\nconst OFFSET = 1.0;\n");
    assert_eq!(module, Module::new([]).with_all([SCALE, OFFSET]));
}

#[test]
fn directives_come_first_and_once() {
    let module = Module::new([SCALE]).enabling("f16").enabling("wgpu_cooperative_matrix").enabling("f16");
    assert!(module.source().starts_with("enable f16;\nenable wgpu_cooperative_matrix;\n// part: scale\n"), "{}", module.source());
}

#[test]
fn modules_are_told_apart_by_their_text() {
    let other = Part { text: "const SCALE = 3.0;\n\n".into(), ..SCALE };
    assert_ne!(Module::new([SCALE]), Module::new([other]));
    assert_ne!(Module::new([SCALE]), Module::new([SCALE]).enabling("f16"));
    assert_eq!(Module::from("fn f() {}"), Module::from("fn f() {}".to_owned()));
}
