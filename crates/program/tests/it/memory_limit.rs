use brisk_program::kernels::DType;
use brisk_program::{Device, Error, Persistent, Program, Selection};

use crate::gpu::gpu;
use crate::toy::{Bump, Mix};

/// Devices with a limit, the executors one after the other.
fn limited(limit_bytes: usize) -> Vec<Device> {
    let selections = [Some(Selection::Cpu), gpu().map(|gpu| Selection::Name(gpu.info().name.clone()))];
    let open = |selection| Device::builder().selection(selection).memory_limit(limit_bytes).open().expect("it opens");
    selections.into_iter().flatten().map(open).collect()
}

/// Reads the weights into a transient of the same size.
fn program(weights: &Persistent) -> Program {
    let mut program = Program::new("large");
    let w = program.persistent(weights);
    let y = program.transient("y", DType::U32, weights.len());
    program.push(Mix { n: weights.len(), salt: 3 }, &[w, w, y]).expect("a mix");
    program.push(Bump { n: weights.len() }, &[y]).expect("a bump");
    program
}

#[track_caller]
fn check_refused<T>(found: Result<T, Error>, name: &str, needed: u64, held: u64, limit: u64) {
    let error = found.err().expect("beyond the limit");
    let message = error.to_string();
    let Error::MemoryLimit { needed_bytes, held_bytes, limit_bytes, .. } = error else { panic!("{message}") };
    assert_eq!((needed_bytes, held_bytes, limit_bytes), (needed, held, limit), "{message}");
    assert!(message.contains(&format!("`{name}`")) && message.contains("raise"), "{message}");
}

#[test]
fn a_program_is_refused_before_anything_is_allocated() {
    let weights = Persistent::new("weights", DType::U32, 256);
    let program = program(&weights);
    let peak = program.plan().expect("in order").peak_bytes();
    for device in limited(peak - 1) {
        assert_eq!(device.memory_limit(), Some(peak - 1), "{}", device.info());
        check_refused(device.compile(&program), "large", peak as u64, 0, peak as u64 - 1);
        assert_eq!(device.allocated_bytes(), 0, "nothing is kept on {}", device.info());
    }
    for device in limited(peak) {
        device.compile(&program).expect("just enough").run(1).expect("it runs");
        assert_eq!(device.allocated_bytes(), 1024, "the weights stay on {}", device.info());
    }
}

/// Buffers that are already held are not counted again, and dropped ones make room.
#[test]
fn what_is_held_counts_once() {
    let weights = Persistent::new("weights", DType::U32, 256);
    let program = program(&weights);
    let peak = program.plan().expect("in order").peak_bytes();
    for device in limited(peak) {
        device.write(&weights, &[1_u32; 256]).expect("it fits");
        let executable = device.compile(&program).expect("the weights are there");
        let one = Persistent::new("one", DType::U8, 1);
        check_refused(device.write(&one, &[1_u8]), "one", 4, peak as u64, peak as u64);
        let second = device.compile(&program);
        check_refused(second, "large", peak as u64 - 1024, peak as u64, peak as u64);
        drop(executable);
        device.write(&one, &[1_u8]).expect("there is room now");
        drop(one);
        device.compile(&program).expect("one is gone");
    }
}

#[test]
fn none_unless_asked_for() {
    assert_eq!(Device::cpu().expect("threads").memory_limit(), None);
}

/// Threads that race for the last bytes never get more than the limit.
#[test]
fn threads_share_one_limit() {
    for device in limited(64 * 1024) {
        let buffers: Vec<_> = (0..200).map(|i| Persistent::new(format!("b{i}"), DType::U32, 256)).collect();
        let n_fit = std::sync::atomic::AtomicUsize::new(0);
        std::thread::scope(|scope| {
            for part in buffers.chunks(50) {
                let (device, n_fit) = (&device, &n_fit);
                scope.spawn(move || {
                    let fit = part.iter().filter(|buffer| device.write(buffer, &[1_u32; 256]).is_ok()).count();
                    n_fit.fetch_add(fit, std::sync::atomic::Ordering::Relaxed);
                });
            }
        });
        assert_eq!((n_fit.into_inner(), device.allocated_bytes()), (64, 64 * 1024), "{}", device.info());
    }
}
