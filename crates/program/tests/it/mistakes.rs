//! Mistakes that would otherwise give wrong numbers: values that were never written, and values of another type.

use brisk_program::kernels::{self, Adapter, Arg, DType, Dispatch, Kernel, Map, Signature, TwinArgs};
use brisk_program::{Device, Error, Executable, Persistent, Program, Upload};

use crate::gpu::devices;

/// `y = 2 x`.
fn double(device: &Device, x: &Persistent, y: &Persistent) -> Result<Executable, Error> {
    let mut program = Program::new("double");
    let args = [x, y].map(|buffer| program.persistent(buffer));
    program.push(Map::unary(2, |x| 2.0 * x), &args)?;
    device.compile(&program)
}

fn buffers() -> [Persistent; 2] {
    [Persistent::required("x", DType::F32, 2), Persistent::new("y", DType::F32, 2)]
}

#[test]
fn a_required_buffer_is_written_before_it_is_read() -> Result<(), Error> {
    for device in devices() {
        let [x, y] = buffers();
        let executable = double(&device, &x, &y)?;
        let error = executable.run(1).expect_err("x was never written");
        assert!(matches!(&error, Error::Unwritten { kernel: "map", buffer, .. } if buffer == "x"), "{error}");
        assert!(executable.profile(1).is_err(), "a profile runs the program, too");
        device.write_at(&x, 1, &[3.0_f32])?;
        executable.run(1)?;
        assert_eq!(device.read::<f32>(&y)?, [0.0, 6.0], "{}", device.info());
    }
    Ok(())
}

#[test]
fn uploads_and_programs_write_required_buffers() -> Result<(), Error> {
    for device in devices() {
        let [x, y] = buffers();
        device.uploads(64, 1)?.write(&[Upload::new(&x, 0, &[1.0_f32, 2.0])])?;
        double(&device, &x, &y)?.run(1)?;

        let [made, z] = buffers();
        let (make, read) = (double(&device, &x, &made)?, double(&device, &made, &z)?);
        make.run(0)?;
        assert!(matches!(read.run(1), Err(Error::Unwritten { .. })), "no replay, no values");
        make.run(1)?;
        read.run(1)?;
        assert_eq!(device.read::<f32>(&z)?, [4.0, 8.0], "{}", device.info());
    }
    Ok(())
}

/// Values written on one device do not count for another.
#[test]
fn each_device_is_written_by_itself() -> Result<(), Error> {
    let [x, y] = buffers();
    let [first, second] = [Device::cpu()?, Device::cpu()?];
    first.write(&x, &[1.0_f32, 2.0])?;
    double(&first, &x, &y)?.run(1)?;
    assert!(matches!(double(&second, &x, &y)?.run(1), Err(Error::Unwritten { .. })), "written on the first only");
    Ok(())
}

#[test]
fn values_of_another_type_are_refused() -> Result<(), Error> {
    for device in devices() {
        let x = Persistent::new("x", DType::F32, 2);
        let refused = [
            device.write(&x, &[1_u32, 2]),
            device.write_at(&x, 0, &[1_i32]),
            device.write(&x, &[1.0_f64]),
            device.uploads(64, 1)?.write(&[Upload::new(&x, 0, &[1_u32])]),
            device.read::<f64>(&x).map(drop),
            device.read::<u8>(&x).map(drop),
            device.read_into(&x, &mut [0_u32; 2]),
        ];
        for result in refused {
            let error = result.expect_err("x holds f32");
            assert!(matches!(error, Error::HostType { dtype: DType::F32, expected: "f32", .. }), "{error}");
        }
        let halves = Persistent::new("halves", DType::F16, 4);
        assert!(device.write(&halves, &[1.0_f32, 2.0]).is_err(), "as many bytes, of another type");
        assert!(device.read::<f32>(&halves).is_err(), "as many bytes, of another type");
        device.write(&halves, &[0_u16; 4])?;
        device.write_bytes(&x, &[0; 8])?;
        assert_eq!(device.read::<f32>(&x)?, [0.0; 2]);
    }
    Ok(())
}

/// A kernel whose twin forgets its result.
#[derive(Debug)]
struct Forgets;

impl Kernel for Forgets {
    fn signature(&self) -> Signature {
        Signature::new("forgets", [Arg::write("y", DType::F32, 2_usize)])
    }

    fn dispatches(&self, _: &Adapter) -> Result<Vec<Dispatch>, kernels::Error> {
        Ok(Vec::new())
    }
    fn twin(&self, _: &mut TwinArgs<'_>) {}
}

#[test]
#[should_panic(expected = "argument `y` is declared as written, and the twin does not write it")]
fn a_result_that_a_twin_does_not_write_is_noticed() {
    let device = Device::cpu().expect("there is always one");
    let [_, y] = buffers();
    let mut program = Program::new("forgets");
    let y = program.persistent(&y);
    program.push(Forgets, &[y]).expect("its arguments fit");
    drop(device.compile(&program).expect("it has a twin").run(1));
}
