//! Work of the host between kernels, on both executors.

use std::sync::{Arc, Mutex};

use brisk_program::kernels::{Arg, DType, Map};
use brisk_program::{Device, Error, HostArgs, HostStep, Persistent, Program};

use crate::gpu::devices;

const N: usize = 100;

type Failure = Box<dyn std::error::Error + Send + Sync>;

/// Stores a copy of the values it reads.
#[derive(Debug, Default)]
struct Keep(Mutex<Vec<Vec<f32>>>);

impl HostStep for Keep {
    fn name(&self) -> &'static str {
        "keep"
    }

    fn args(&self) -> Vec<Arg> {
        vec![Arg::read("x", DType::F32, N)]
    }

    fn run(&self, args: &mut HostArgs<'_>) -> Result<(), Failure> {
        let mut x = vec![0.0; N];
        args.read(0, 0, &mut x)?;
        self.0.lock().expect("no panic").push(x);
        Ok(())
    }
}

/// Adds the values that `Keep` stored last to its argument, from the third element on.
#[derive(Debug)]
struct AddKept(Arc<Keep>);

impl HostStep for AddKept {
    fn name(&self) -> &'static str {
        "add_kept"
    }

    fn args(&self) -> Vec<Arg> {
        vec![Arg::read_write("y", DType::F32, N)]
    }

    fn run(&self, args: &mut HostArgs<'_>) -> Result<(), Failure> {
        let mut y = vec![0.0; N - 2];
        args.read(0, 2, &mut y)?;
        let kept = self.0.0.lock().expect("no panic");
        let last = kept.last().ok_or("nothing has been kept")?;
        y.iter_mut().zip(&last[2..]).for_each(|(y, x)| *y += x);
        args.write(0, 2, &y)?;
        Ok(())
    }
}

/// `sum = relu(-x) + x`, with `x` kept before and added after: to a transient, in the middle of a chain that would otherwise be
/// one kernel.
fn program(x: &Persistent, sum: &Persistent, keep: &Arc<Keep>) -> Result<Program, Error> {
    let mut program = Program::new("with the host");
    let [x, sum] = [x, sum].map(|persistent| program.persistent(persistent));
    let relu = program.transient("relu", DType::F32, N);
    program.push_host(keep.clone(), &[x])?;
    program.push(Map::unary(N, |x| x.relu()), &[x, relu])?;
    program.push_host(Arc::new(AddKept(keep.clone())), &[relu])?;
    program.push(Map::binary(N, |a, b| a + b), &[relu, x, sum])?;
    program.push(Map::unary(N, |x| x), &[sum, x])?;
    Ok(program)
}

#[test]
fn the_host_reads_and_writes_in_each_replay() -> Result<(), Error> {
    for device in devices() {
        let (x, sum) = (Persistent::new("x", DType::F32, N), Persistent::new("sum", DType::F32, N));
        let keep = Arc::new(Keep::default());
        let executable = device.compile(&program(&x, &sum, &keep)?)?;
        let mut expected: Vec<f32> = (0..N).map(|i| i as f32).collect();
        device.write(&x, &expected)?;
        executable.run(3)?;
        for _ in 0..3 {
            // Twice x, and once more where the host adds it.
            expected.iter_mut().enumerate().for_each(|(i, x)| *x *= if i < 2 { 2.0 } else { 3.0 });
        }
        assert_eq!(device.read::<f32>(&sum)?, expected, "{}", device.info());
        let kept = keep.0.lock().expect("no panic");
        assert_eq!(kept.iter().map(|x| (x[1], x[2])).collect::<Vec<_>>(), [(1.0, 2.0), (2.0, 6.0), (4.0, 18.0)]);
    }
    Ok(())
}

#[test]
fn a_host_step_may_be_given_a_buffer_that_is_partly_written() -> Result<(), Error> {
    let plan = |n_written: usize| {
        let mut program = Program::new("part");
        let x = program.persistent(&Persistent::new("x", DType::F32, N));
        let y = program.transient("y", DType::F32, N);
        if n_written > 0 {
            program.push(Map::unary(n_written, |x| x), &[x.slice(0..n_written), y.slice(0..n_written)])?;
        }
        program.push_host(Arc::new(Keep::default()), &[y])?;
        program.plan()
    };
    assert!(plan(1).is_ok(), "it reads elements of its choice");
    assert!(matches!(plan(0), Err(Error::ReadBeforeWrite { .. })), "there are none");
    Ok(())
}

#[test]
fn a_rewrite_leaves_the_host_its_place() -> Result<(), Error> {
    let (x, sum) = (Persistent::new("x", DType::F32, N), Persistent::new("sum", DType::F32, N));
    let keep = Arc::new(Keep::default());
    let program = program(&x, &sum, &keep)?;
    let rewritten = program.rewritten(&brisk_program::Rewrite::ALL);
    assert_eq!(rewritten.kernel_names().collect::<Vec<_>>(), program.kernel_names().collect::<Vec<_>>());
    let device = Device::cpu()?;
    let executable = device.compile(&rewritten)?;
    device.write(&x, &[1.0_f32; N])?;
    executable.run(1)?;
    assert_eq!(device.read::<f32>(&sum)?[..3], [2.0, 2.0, 3.0]);
    Ok(())
}

#[test]
fn a_step_is_put_behind_the_last_write_of_what_it_reads() -> Result<(), Error> {
    let [a, b] = ["a", "b"].map(|name| Persistent::new(name, DType::F32, 4 * N));
    let mut program = Program::new("buckets");
    let [a, b] = [&a, &b].map(|persistent| program.persistent(persistent));
    for i in [3, 2, 2, 0] {
        let part = i * N..(i + 1) * N;
        program.push(Map::unary(N, |x| x.relu()), &[b.slice(part.clone()), a.slice(part)])?;
    }
    assert_eq!([0, 1, 2, 3].map(|i| program.last_write(a.slice(i * N..(i + 1) * N))), [Some(3), None, Some(2), Some(0)]);
    assert_eq!((program.last_write(a), program.last_write(b)), (Some(3), None));
    program.insert_host(1, Arc::new(Keep::default()), &[a.slice(3 * N..4 * N)])?;
    assert_eq!(program.kernel_names().collect::<Vec<_>>(), ["map", "keep", "map", "map", "map"]);
    Ok(())
}

#[derive(Debug)]
struct Fails(Arg);

impl HostStep for Fails {
    fn name(&self) -> &'static str {
        "fails"
    }

    fn args(&self) -> Vec<Arg> {
        vec![self.0]
    }

    fn run(&self, args: &mut HostArgs<'_>) -> Result<(), Failure> {
        args.write(0, N - 1, &[1.0_f32, 2.0])?;
        Ok(())
    }
}

#[test]
fn what_the_host_does_wrong_ends_the_run() -> Result<(), Error> {
    for device in devices() {
        let x = Persistent::new("x", DType::F32, N);
        let keep = Arc::new(Keep::default());
        let mut wrong = Program::new("wrong");
        let slice = wrong.persistent(&x);
        wrong.push_host(Arc::new(AddKept(keep.clone())), &[slice])?;
        let executable = device.compile(&wrong)?;
        let error = executable.run(1).expect_err("nothing was kept");
        assert_eq!(error.to_string(), "wrong: host step `add_kept`: nothing has been kept");

        for (arg, how) in [(Arg::read_write("x", DType::F32, N), "too long"), (Arg::read("x", DType::F32, N), "not written")] {
            let mut wrong = Program::new("wrong");
            let slice = wrong.persistent(&x);
            wrong.push_host(Arc::new(Fails(arg)), &[slice])?;
            let error = device.compile(&wrong)?.run(1).expect_err(how);
            assert!(
                matches!(error, Error::HostArg { step: "fails", arg: 0, how: "written", start: 99, len_bytes: 8 }),
                "{error}"
            );
        }
        let mut wrong = Program::new("wrong");
        let slice = wrong.persistent(&x);
        let scratch = Fails(Arg::scratch("x", DType::F32, N));
        assert!(matches!(wrong.push_host(Arc::new(scratch), &[slice]), Err(Error::HostScratch { arg: "x", .. })));
        // The device stays usable.
        device.write(&x, &[2.0_f32; N])?;
        assert_eq!(device.read::<f32>(&x)?, [2.0; N]);
    }
    Ok(())
}

#[test]
fn a_profile_times_the_host_too() -> Result<(), Error> {
    for device in devices() {
        let (x, sum) = (Persistent::new("x", DType::F32, N), Persistent::new("sum", DType::F32, N));
        let keep = Arc::new(Keep::default());
        let profile = device.compile(&program(&x, &sum, &keep)?)?.profile(2)?;
        assert!(profile.to_string().contains("add_kept"), "{profile}");
        assert_eq!(keep.0.lock().expect("no panic").len(), 2);
    }
    Ok(())
}
