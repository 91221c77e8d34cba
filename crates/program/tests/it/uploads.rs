//! Values written through a ring of staging memory arrive, in order with runs, on both executors.

use brisk_program::kernels::DType;
use brisk_program::{Error, Persistent, Program, Upload};

use crate::gpu::devices;
use crate::random::Random;
use crate::toy::Bump;

#[test]
fn a_ring_that_goes_round_is_in_order_with_runs() -> Result<(), Error> {
    for device in devices() {
        let x = Persistent::new("x", DType::U32, 64);
        let mut program = Program::new("bump");
        let slice = program.persistent(&x);
        program.push(Bump { n: 64 }, &[slice])?;
        let executable = device.compile(&program)?;
        for n_slots in [1, 2, 3] {
            let mut uploads = device.uploads(300, n_slots)?;
            for value in 0..10_u32 {
                uploads.write(&[Upload::new(&x, 0, &[value; 64])])?;
                executable.run(1)?;
                // A part of it, and twice in one call: the last one wins.
                uploads.write(&[Upload::new(&x, 7, &[1000_u32, 3]), Upload::new(&x, 7, &[2000_u32])])?;
                executable.run(1)?;
                let mut expected = [5 * (5 * value + 1) + 1; 64];
                (expected[7], expected[8]) = (10_001, 16);
                assert_eq!(device.read::<u32>(&x)?, expected, "{n_slots} slots on {}", device.info());
            }
        }
    }
    Ok(())
}

/// Every start and length within a few words, in slots that cut them, against a slice on the host.
#[test]
fn any_place_and_any_length() -> Result<(), Error> {
    let mut random = Random::new(3);
    for device in devices() {
        for slot_bytes in [1, 8, 1024] {
            let (bytes, mut expected) = (Persistent::new("bytes", DType::U8, 19), vec![0_u8; 19]);
            let mut uploads = device.uploads(slot_bytes, 2)?;
            for start in 0..=19 {
                for len in [0, 1, 3, 4, 9, 19 - start].into_iter().filter(|len| start + len <= 19) {
                    let values: Vec<_> = (0..len).map(|_| random.next() as u8).collect();
                    uploads.write(&[Upload::new(&bytes, start, &values)])?;
                    expected[start..start + len].copy_from_slice(&values);
                    assert_eq!(device.read::<u8>(&bytes)?, expected, "{start} + {len}, {slot_bytes} on {}", device.info());
                }
            }
        }
    }
    Ok(())
}

/// Pieces of an odd number of words, one after the other in a slot.
#[test]
fn many_parts_of_any_length() -> Result<(), Error> {
    for device in devices() {
        let lengths = [1, 2, 3, 5, 8, 13, 1];
        let parts: Vec<_> = lengths.iter().map(|&len| (Persistent::new("part", DType::U8, len), vec![len as u8; len])).collect();
        let mut uploads = device.uploads(40, 2)?;
        for _ in 0..3 {
            uploads.write(&parts.iter().map(|(to, values)| Upload::new(to, 0, values)).collect::<Vec<_>>())?;
        }
        for (to, values) in &parts {
            assert_eq!(&device.read::<u8>(to)?, values, "{} bytes on {}", values.len(), device.info());
        }
    }
    Ok(())
}

#[test]
fn values_beyond_the_buffer_are_refused_and_none_is_written() -> Result<(), Error> {
    for device in devices() {
        let (x, y) = (Persistent::new("x", DType::F32, 4), Persistent::new("y", DType::F32, 2));
        let mut uploads = device.uploads(64, 2)?;
        let error = uploads.write(&[Upload::new(&x, 0, &[1.0_f32; 4]), Upload::new(&y, 1, &[1.0_f32; 2])]);
        let error = error.expect_err("`y` has two elements");
        assert!(matches!(&error, Error::HostRange { buffer, start: 1, found_bytes: 8, .. } if buffer == "y"), "{error:?}");
        assert_eq!(device.read::<f32>(&x)?, [0.0; 4], "on {}", device.info());
    }
    Ok(())
}
