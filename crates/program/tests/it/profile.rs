use brisk_program::kernels::{DType, Map};
use brisk_program::{Device, DeviceKind, Error, Persistent, Profile, Program, Selection, Timer};
use serde_json::Value;

use crate::gpu::devices;
use crate::mlp::{Mlp, Sizes};
use crate::toy::Bump;

const N_REPLAYS: usize = 4;

/// Two large additions, two small ones and a bump; a name that JSON has to escape.
fn program(x: &Persistent) -> Program {
    let mut program = Program::new("a \"step\"");
    let count = program.persistent(x);
    let [a, b, y] = ["a", "b", "y"].map(|name| program.persistent(&Persistent::new(name, DType::F32, 1 << 16)));
    for n in [1 << 16, 64, 1 << 16, 64] {
        program.push(Map::binary(n, |a, b| a + b), &[a.slice(0..n), b.slice(0..n), y.slice(0..n)]).expect("an add");
    }
    program.push(Bump { n: x.len() }, &[count]).expect("a bump");
    program
}

fn profiles() -> Vec<(Device, Profile)> {
    let profile = |device: Device| {
        let x = Persistent::new("x", DType::U32, 3);
        let executable = device.compile(&program(&x)).expect("it compiles");
        executable.run(1).expect("it runs");
        let profile = executable.profile(N_REPLAYS).expect("it runs");
        let expected = (0..=N_REPLAYS).fold(0_u32, |x, _| 5 * x + 1);
        assert_eq!(device.read::<u32>(&x).expect("x"), [expected; 3], "a profiled replay is a replay, on {}", device.info());
        (device, profile)
    };
    devices().into_iter().map(profile).collect()
}

#[test]
fn kernels_by_name_and_size() {
    for (device, profile) in profiles() {
        let n = N_REPLAYS as u64;
        let mut kernels: Vec<_> = profile.kernels().iter().map(|k| (k.name, k.n_calls, k.bytes, k.flops)).collect();
        kernels.sort_unstable();
        let large = 1 << 16;
        let expected = [
            ("bump", n, n * 12, 0),
            ("map", 2 * n, 2 * n * 12 * 64, 2 * n * 64),
            ("map", 2 * n, 2 * n * 12 * large, 2 * n * large),
        ];
        assert_eq!(kernels, expected, "on {}", device.info());
        let total: u64 = profile.kernels().iter().map(|kernel| kernel.total_ns).sum();
        assert_eq!((total, profile.n_replays()), (profile.total_ns(), N_REPLAYS), "each call counts once");
        let labels: Vec<_> =
            profile.kernels().into_iter().filter(|kernel| kernel.name == "map").flat_map(|k| k.dispatches).collect();
        let is_twin = device.info().kind == DeviceKind::Cpu;
        assert_eq!(labels, if is_twin { vec![] } else { vec!["kernels.map"; 2] }, "on {}", device.info());
        assert!(profile.kernels().is_sorted_by_key(|kernel| std::cmp::Reverse(kernel.total_ns)), "slowest first");
        let timers =
            if device.info().kind == DeviceKind::Cpu { vec![Timer::Clock] } else { vec![Timer::Timestamps, Timer::Waits] };
        assert!(timers.contains(&profile.timer()), "{:?} on {}", profile.timer(), device.info());
    }
}

#[test]
fn a_share_of_what_the_device_can_do() {
    for (device, profile) in profiles() {
        let roofline = device.roofline().expect("it was measured");
        assert_eq!(&roofline, profile.roofline(), "measured once on {}", device.info());
        assert!(roofline.copy_bytes_per_s > 1e6 && roofline.flops_per_s > 1e6, "{roofline} on {}", device.info());
        for kernel in profile.kernels() {
            let [by_bytes, by_flops] =
                [kernel.bytes as f64 / roofline.copy_bytes_per_s, kernel.flops as f64 / roofline.flops_per_s]
                    .map(|least_s| 1e9 * least_s / kernel.total_ns.max(1) as f64);
            let (share, expected) = (kernel.roofline_share(&roofline), by_bytes.max(by_flops));
            assert!((share - expected).abs() <= 1e-9 * expected, "{share} of the roofline, {expected} expected: {kernel:?}");
        }
        assert_eq!(device.allocated_bytes(), 0, "what it was measured with is freed on {}", device.info());
    }
}

#[test]
fn the_table() {
    for (device, profile) in profiles() {
        let table = profile.to_string();
        let lines: Vec<_> = table.lines().collect();
        assert_eq!(lines.len(), 2 + 3, "a line on the whole, one of heads, and three kernels: {table}");
        for word in ["a \"step\"", &device.info().name, "4 replays", "GB/s"] {
            assert!(lines[0].contains(word), "`{word}` is not in: {table}");
        }
        let rows = |name| lines[2..].iter().filter(move |line| line.starts_with(name));
        assert_eq!((rows("map ").count(), rows("bump ").count()), (2, 1), "{table}");
        assert!(rows("map ").all(|line| line.contains(" 8 ")) && rows("bump ").all(|line| line.contains(" 4 ")), "{table}");
        let form = lines[1].find("form").expect("the last column");
        let has_form = |line: &&str| line[..form].ends_with("  ") && !line[form..].starts_with(' ');
        assert!(lines[1..].iter().all(has_form), "columns are aligned: {table}");
        let is_twin = device.info().kind == DeviceKind::Cpu;
        assert!(rows("bump ").all(|line| line.ends_with(if is_twin { "  twin" } else { "  bump" })), "{table}");
    }
}

#[test]
fn the_trace() {
    for (device, profile) in profiles() {
        let mut bytes = Vec::new();
        profile.write_chrome_trace(&mut bytes).expect("memory takes it");
        let trace: Value = serde_json::from_slice(&bytes).expect("it is JSON");
        let events = trace["traceEvents"].as_array().expect("a list");
        assert!(events[0]["args"]["name"].as_str().is_some_and(|name| name.starts_with("a \"step\" on")), "{}", events[0]);
        let spans: Vec<_> = events.iter().filter(|event| event["ph"] == "X").collect();
        assert_eq!(spans.len(), 5 * N_REPLAYS, "a call each on {}", device.info());
        let names: Vec<_> = spans[..5].iter().map(|event| event["name"].as_str().expect("a name")).collect();
        assert_eq!(names, ["map", "map", "map", "map", "bump"], "in the program's order");
        let sum_us: f64 = spans.iter().map(|event| event["dur"].as_f64().expect("a number")).sum();
        assert!((1e3 * sum_us - profile.total_ns() as f64).abs() < 1.0, "{sum_us} us on {}", device.info());
        let starts: Vec<_> = spans.iter().map(|event| event["ts"].as_f64().expect("a number")).collect();
        assert!(starts[0] == 0.0 && starts.is_sorted(), "from the first start on, on {}: {starts:?}", device.info());
    }
}

#[test]
fn a_whole_step() {
    for device in devices() {
        let mlp = Mlp::new(Sizes { n_rows: 16, n_inputs: 5, n_hidden: 9, n_steps: 3 }).expect("it is well formed");
        let executable = device.compile(&mlp.program).expect("it compiles");
        mlp.reset(&device).expect("values fit");
        let profile = executable.profile(3).expect("it runs");
        let n_calls: u64 = profile.kernels().iter().map(|kernel| kernel.n_calls).sum();
        assert_eq!(n_calls, 3 * mlp.program.n_kernels() as u64, "each kernel, on {}", device.info());
        let flops: u64 = profile.kernels().iter().map(|kernel| kernel.flops).sum();
        assert_eq!(flops, 3 * mlp.program.cost().flops, "each kernel's work");
    }
}

#[test]
fn nothing_to_profile() {
    for device in devices() {
        let empty = device.compile(&Program::new("empty")).expect("nothing to refuse").profile(2).expect("nothing to run");
        assert_eq!((empty.kernels(), empty.total_ns()), (vec![], 0), "on {}", device.info());
        let x = Persistent::new("x", DType::U32, 3);
        let never = device.compile(&program(&x)).expect("it compiles").profile(0).expect("nothing to run");
        assert_eq!(never.total_ns(), 0, "on {}", device.info());
        never.to_string();
    }
}

/// The buffers that the roofline is measured with fit below a memory limit, or an error says so.
#[test]
fn within_a_memory_limit() {
    let open = |limit| Device::builder().selection(Selection::Cpu).memory_limit(limit).open().expect("threads");
    let small = open(1 << 20).roofline().expect("a megabyte is enough");
    assert!(small.copy_bytes_per_s > 0.0 && small.flops_per_s > 0.0, "{small}");
    assert!(matches!(open(1 << 10).roofline(), Err(Error::MemoryLimit { .. })), "a kilobyte is not");
}
