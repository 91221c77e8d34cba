//! Several devices on one adapter: of several processes, and of several threads of one.

use std::process::{Command, Stdio};

use brisk_program::kernels::DType;
use brisk_program::{Device, Persistent, Program, Selection};

use crate::gpu::{gpu, own_gpu};
use crate::toy::Bump;

const N_STEPS: usize = 40;

fn work(device: &Device, start: u32) {
    let x = Persistent::new("x", DType::U32, 100);
    let mut program = Program::new("bumps");
    let slice = program.persistent(&x);
    (0..3).for_each(|_| program.push(Bump { n: 100 }, &[slice]).expect("a bump"));
    device.write(&x, &[start; 100]).expect("it fits");
    let executable = device.compile(&program).expect("it compiles");
    (0..N_STEPS).for_each(|_| executable.run(1).expect("it runs"));
    let expected = (0..3 * N_STEPS).fold(start, |x, _| x.wrapping_mul(5).wrapping_add(1));
    assert_eq!(device.read::<u32>(&x).expect("x"), [expected; 100], "from {start}");
}

#[test]
fn threads_with_a_device_each() {
    let devices: Vec<_> = (0..3).map_while(|_| own_gpu()).collect();
    std::thread::scope(|scope| {
        for (start, device) in (1..).zip(&devices) {
            scope.spawn(move || work(device, start));
        }
    });
}

#[test]
fn processes_on_one_adapter() {
    if let Ok(name) = std::env::var("BRISK_SIDE_BY_SIDE") {
        let device = Device::builder().selection(Selection::Name(name)).memory_limit(1 << 20).open().expect("others use it too");
        return (1..4).for_each(|start| work(&device, start));
    }
    let Some(gpu) = gpu() else { return };
    let start = || {
        Command::new(std::env::current_exe().expect("this test"))
            .args(["--exact", "side_by_side::processes_on_one_adapter"])
            .env("BRISK_SIDE_BY_SIDE", &gpu.info().name)
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .expect("this test runs again")
    };
    let processes: Vec<_> = (0..3).map(|_| start()).collect();
    work(&gpu, 9);
    for process in processes {
        let output = process.wait_with_output().expect("it ends");
        assert!(
            output.status.success(),
            "{}{}",
            String::from_utf8_lossy(&output.stdout),
            String::from_utf8_lossy(&output.stderr)
        );
    }
}
