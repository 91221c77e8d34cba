use super::*;

const SCALE: Part = Part { name: Cow::Borrowed("scale"), text: Cow::Borrowed("const SCALE = 2.0;\n\n"), loops_end: true };
const OFFSET: Part = Part { name: Cow::Borrowed("offset"), text: Cow::Borrowed("const OFFSET = 1.0;"), loops_end: true };

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
    let other = Part::own("scale", "const SCALE = 3.0;\n\n");
    assert_ne!(Module::new([SCALE]), Module::new([other]));
    assert_ne!(Module::new([SCALE]), Module::new([SCALE]).enabling("f16"));
    assert_eq!(Module::from("fn f() {}"), Module::from("fn f() {}".to_owned()));
}

#[test]
fn one_part_of_another_crate_brings_the_loop_guards_back() {
    let own = Module::new([SCALE, OFFSET]);
    assert!(!own.has_loop_guards(), "parts of this crate");
    assert!(own.clone().with(Part::new("f", "fn f() {}")).has_loop_guards(), "and a part of another");
    assert!(Module::from("fn f() {}").has_loop_guards(), "a module from text");
}
