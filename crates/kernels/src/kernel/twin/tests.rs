use super::*;

fn declared() -> [Arg; 5] {
    [
        Arg::read("x", DType::F32, 2),
        Arg::read("x", DType::F32, 2),
        Arg::write("y", DType::F16, 2),
        Arg::read_write("state", DType::U32, 1),
        Arg::scratch("parts", DType::F32, 1),
    ]
}

/// The buffers of these arguments, as words.
#[derive(Default)]
struct Buffers {
    xs: [[f32; 2]; 2],
    y: u32,
    state: u32,
    parts: u32,
}

fn check(kernel: impl FnOnce(&mut TwinArgs<'_>)) {
    let (declared, mut buffers) = (declared(), Buffers { xs: [[1.0, 2.0], [3.0, 4.0]], ..Buffers::default() });
    let mut args = TwinArgs::new(&declared);
    buffers.xs.iter().for_each(|x| args.push_read(bytemuck::bytes_of(x)));
    for word in [&mut buffers.y, &mut buffers.state, &mut buffers.parts] {
        args.push_write(bytemuck::bytes_of_mut(word));
    }
    kernel(&mut args);
}

#[test]
fn arguments_are_found_by_name_and_several_of_one_name_by_index() {
    check(|args| {
        assert_eq!(args.read::<f32>("x"), [1.0, 2.0], "the first of its name");
        assert_eq!([0, 1].map(|index| args.read::<f32>(index)[0]), [1.0, 3.0]);
        assert_eq!(args.write::<u32>("state").len(), 1);
        assert_eq!(args.write::<f32>("parts").len(), 1);
    });
}

#[test]
fn values_of_16_bits_are_taken_as_floats_or_as_bits() {
    check(|args| assert_eq!((args.dtype("y"), args.write::<f16>("y").len()), (DType::F16, 2)));
    check(|args| assert_eq!(args.write::<u16>("y").len(), 2));
}

#[test]
#[should_panic(expected = "there is no argument `z`; the kernel has x, x, y, state, parts")]
fn an_unknown_name_is_a_mistake() {
    check(|args| assert!(args.read::<f32>("z").is_empty()));
}

#[test]
#[should_panic(expected = "there is no argument `5`; the kernel has x, x, y, state, parts")]
fn an_index_beyond_the_list_is_a_mistake() {
    check(|args| assert!(args.read::<f32>(5).is_empty()));
}

#[test]
#[should_panic(expected = "argument `state` is written, take it with `write`; the kernel has x, x, y, state, parts")]
fn what_is_written_is_not_read() {
    check(|args| assert!(args.read::<u32>("state").is_empty()));
}

#[test]
#[should_panic(expected = "argument `x` is only read, take it with `read`; the kernel has x, x, y, state, parts")]
fn what_is_only_read_is_not_written() {
    check(|args| args.write::<f32>("x").fill(0.0));
}

#[test]
#[should_panic(expected = "argument `x` has elements of f32, not u32; the kernel has x, x, y, state, parts")]
fn elements_are_of_the_declared_type() {
    check(|args| assert!(args.read::<u32>("x").is_empty()));
}

#[test]
#[should_panic(expected = "argument `y` has elements of f16, not half::bfloat::bf16; the kernel has x, x, y, state, parts")]
fn types_of_16_bits_are_told_apart() {
    check(|args| args.write::<bf16>("y").fill(bf16::ZERO));
}

#[test]
#[should_panic(expected = "argument `y` was taken before; the kernel has x, x, y, state, parts")]
fn what_is_written_is_taken_once() {
    check(|args| assert_eq!(args.write::<f16>("y").len(), args.write::<f16>("y").len()));
}

#[test]
#[should_panic(expected = "argument `x` was given 4 bytes, expected 8; the kernel has x, x, y, state, parts")]
fn a_buffer_is_as_long_as_declared() {
    TwinArgs::new(&declared()).push_read(&[0; 4]);
}

#[test]
#[should_panic(expected = "argument `x` is only read, give it with `push_read`; the kernel has x, x, y, state, parts")]
fn a_buffer_that_is_only_read_is_not_given_for_writing() {
    TwinArgs::new(&declared()).push_write(&mut [0; 8]);
}

#[test]
#[should_panic(expected = "argument `x` is written, give it with `push_write`; the kernel has x")]
fn a_buffer_that_is_written_is_not_given_for_reading() {
    TwinArgs::new(&[Arg::read_write("x", DType::U8, 8)]).push_read(&[0; 8]);
}

#[test]
#[should_panic(expected = "more buffers than arguments were given; the kernel has ")]
fn more_buffers_than_arguments_are_a_mistake() {
    TwinArgs::new(&[]).push_read(&[]);
}

#[test]
#[should_panic(expected = "argument `x` was given no buffer; the kernel has x, x, y, state, parts")]
fn every_argument_has_a_buffer() {
    let declared = declared();
    assert!(TwinArgs::new(&declared).read::<f32>("x").is_empty());
}

#[test]
#[should_panic(expected = "argument `x` was given bytes at address")]
fn bytes_that_are_not_aligned_are_a_mistake() {
    let declared = [Arg::read("x", DType::F32, 2)];
    let words = [0_u32; 3];
    TwinArgs::new(&declared).push_read(&bytemuck::bytes_of(&words)[1..9]);
}
