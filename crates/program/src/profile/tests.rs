use brisk_kernels::Cost;

use super::{KernelProfile, Profile, ProfiledStep, Span, Timer};
use crate::device_info::{DeviceInfo, DeviceKind};
use crate::profile::roofline::Roofline;

const ROOFLINE: Roofline = Roofline { copy_bytes_per_s: 1e9, flops_per_s: 1e10 };

/// Two replays of four steps: two calls of a small product, one of a large product, and an addition.
fn profile(lens_ns: [u64; 8]) -> Profile {
    let device = DeviceInfo::new("toy".to_owned(), DeviceKind::Cpu, "none".to_owned());
    let (small, large) = (Cost { flops: 100, bytes: 20 }, Cost { flops: 1000, bytes: 40 });
    let step = |(name, cost)| ProfiledStep { name, cost, dispatches: vec![] };
    let steps = [("matmul", small), ("add", Cost { flops: 5, bytes: 60 }), ("matmul", large), ("matmul", small)];
    let spans = lens_ns.iter().enumerate().map(|(i, &len_ns)| Span { step: i % 4, start_ns: 100 * i as u64, len_ns });
    Profile::new("step".to_owned(), device, 2, ROOFLINE, steps.map(step).into(), (Timer::Clock, spans.collect()))
}

fn row(name: &'static str, n_calls: u64, total_ns: u64, bytes: u64, flops: u64) -> KernelProfile {
    KernelProfile { name, n_calls, total_ns, bytes, flops, dispatches: vec![] }
}

#[test]
fn calls_of_one_name_and_size_are_a_row_the_slowest_first() {
    let add_first = profile([10, 200, 30, 12, 10, 210, 32, 13]);
    assert_eq!(
        add_first.kernels(),
        [row("add", 2, 410, 120, 10), row("matmul", 2, 62, 80, 2000), row("matmul", 4, 45, 80, 400)],
        "{add_first}"
    );
    let small_first = profile([500, 20, 30, 400, 10, 21, 32, 13]);
    let names_ns: Vec<_> = small_first.kernels().iter().map(|kernel| (kernel.name, kernel.total_ns)).collect();
    assert_eq!(names_ns, [("matmul", 923), ("matmul", 62), ("add", 41)], "{small_first}");
    assert_eq!(small_first.total_ns(), 923 + 62 + 41, "each span once");
    let table = small_first.to_string();
    let first: Vec<_> = table.lines().nth(2).expect("a row a kernel").split_whitespace().collect();
    // 80 bytes in 923 ns are 80 ns at a gigabyte a second.
    assert_eq!(first, ["matmul", "4", "0.001", "90.0%", "0.23", "0.09", "0.43", "8.7%", "twin"], "{table}");
}

#[test]
fn the_roof_is_the_slower_of_bytes_and_operations() {
    for (kernel, share) in [
        (row("bound by bytes", 1, 100, 50, 10), 0.5),
        (row("bound by operations", 1, 100, 50, 800), 0.8),
        (row("took no time", 1, 0, 50, 0), 50.0),
    ] {
        assert!(
            (kernel.roofline_share(&ROOFLINE) - share).abs() < 1e-12,
            "{}: {}",
            kernel.name,
            kernel.roofline_share(&ROOFLINE)
        );
    }
}

#[test]
fn kernels_of_two_forms_are_two_rows_that_name_them() {
    let mut profile = profile([10, 20, 30, 40, 10, 20, 30, 40]);
    profile.steps[0].dispatches = vec!["kernels.matmul.thin", "kernels.matmul.sum"];
    profile.steps[3].dispatches = vec!["kernels.matmul.direct"];
    let calls: Vec<_> = profile.kernels().into_iter().map(|kernel| (kernel.dispatches, kernel.n_calls)).collect();
    let expected =
        [(vec!["kernels.matmul.direct"], 2), (vec![], 2), (vec![], 2), (vec!["kernels.matmul.thin", "kernels.matmul.sum"], 2)];
    assert_eq!(calls, expected);
    let table = profile.to_string();
    assert!(table.ends_with("  matmul.thin + matmul.sum\n"), "{table}");
}
