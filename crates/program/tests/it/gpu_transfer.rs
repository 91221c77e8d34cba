use brisk_program::kernels::DType;
use brisk_program::{Device, Persistent, Program};

use crate::gpu::{devices, gpu};
use crate::random::Random;
use crate::toy::Bump;

#[test]
fn more_than_one_piece() {
    let Some(gpu) = gpu() else { return };
    // Two pieces of 16 MiB and a little, not a whole number of words.
    let len = (32 << 20) + 4 + 3;
    let big = Persistent::new("big", DType::U8, len);
    let values: Vec<u8> = (0..len).map(|i| (i as u32).wrapping_mul(2_654_435_761).to_be_bytes()[0]).collect();
    gpu.write(&big, &values).expect("it fits");
    assert!(gpu.read::<u8>(&big).expect("big") == values, "every byte comes back");
    gpu.write_at(&big, 1 << 24, &values[..(16 << 20) + 1]).expect("it fits");
    let found = gpu.read::<u8>(&big).expect("big");
    assert!(found[1 << 24..(32 << 20) + 1] == values[..(16 << 20) + 1], "the middle is new");
    assert!(found[..1 << 24] == values[..1 << 24] && found[(32 << 20) + 1..] == values[(32 << 20) + 1..], "the rest is not");
}

#[test]
fn odd_lengths() {
    for device in devices() {
        for len in [1, 2, 3, 5, 7, 63, 65] {
            let bytes = Persistent::new("bytes", DType::U8, len);
            let values: Vec<u8> = (0..len).map(|i| 200 - i as u8).collect();
            assert_eq!(device.read::<u8>(&bytes).expect("bytes"), vec![0; len], "fresh memory is zero");
            device.write(&bytes, &values).expect("it fits");
            assert_eq!(device.read::<u8>(&bytes).expect("bytes"), values, "{len} bytes on {}", device.info());
            let halves = Persistent::new("halves", DType::F16, len);
            let values: Vec<u16> = (0..len).map(|i| 0x3C00 + i as u16).collect();
            device.write(&halves, &values).expect("it fits");
            assert_eq!(device.read::<u16>(&halves).expect("halves"), values, "{len} halves on {}", device.info());
        }
    }
}

/// Every start and length within a few words, against a slice on the host.
#[test]
fn writes_at_any_place() {
    for device in devices() {
        let (bytes, mut expected) = (Persistent::new("bytes", DType::U8, 19), vec![0_u8; 19]);
        let mut random = Random::new(1);
        for start in 0..=19 {
            for len in [0, 1, 2, 3, 4, 5, 9, 19 - start].into_iter().filter(|len| start + len <= 19) {
                let values: Vec<_> = (0..len).map(|_| random.next() as u8).collect();
                device.write_at(&bytes, start, &values).expect("it fits");
                expected[start..start + len].copy_from_slice(&values);
                assert_eq!(device.read::<u8>(&bytes).expect("bytes"), expected, "{start} + {len} on {}", device.info());
            }
        }
        let halves = Persistent::new("halves", DType::F16, 5);
        device.write(&halves, &[1_u16, 2, 3, 4, 5]).expect("it fits");
        device.write_at(&halves, 1, &[20_u16, 30]).expect("it fits");
        assert_eq!(device.read::<u16>(&halves).expect("halves"), [1, 20, 30, 4, 5], "{}", device.info());
    }
}

#[test]
fn writes_are_in_order_with_runs() {
    for device in devices() {
        let x = Persistent::new("x", DType::U32, 64);
        let mut program = Program::new("bump");
        let slice = program.persistent(&x);
        program.push(Bump { n: 64 }, &[slice]).expect("a bump");
        let executable = device.compile(&program).expect("it compiles");
        for value in 0..5_u32 {
            device.write(&x, &[value; 64]).expect("it fits");
            executable.run(1).expect("it runs");
            device.write_at(&x, 3, &[1000_u32]).expect("it fits");
            executable.run(1).expect("it runs");
            let mut expected = [5 * (5 * value + 1) + 1; 64];
            expected[3] = 5001;
            assert_eq!(device.read::<u32>(&x).expect("x"), expected, "{}", device.info());
        }
    }
}

/// Each read waits for its own copy; the wait of another thread must not consume its result.
#[test]
fn reads_from_several_threads() {
    let Some(gpu) = &gpu() else { return };
    let read = |gpu: &Device, value: u32| {
        let x = Persistent::new("x", DType::U32, 1000);
        for i in 0..25 {
            gpu.write(&x, &[value + i; 1000]).expect("it fits");
            assert_eq!(gpu.read::<u32>(&x).expect("x"), [value + i; 1000], "its own value");
        }
    };
    std::thread::scope(|scope| (0..4).for_each(|i| drop(scope.spawn(move || read(gpu, i * 1000)))));
}
