use brisk_program::{Device, DeviceBuilder, DeviceKind, Error, Selection};

use crate::gpu::gpu;

#[track_caller]
fn check(word: &str, expected: Selection) {
    assert_eq!(word.parse(), Ok(expected.clone()), "`{word}`");
    assert_eq!(expected.to_string().parse(), Ok(expected), "a selection's own words mean it");
}

#[test]
fn words() {
    check("", Selection::Best);
    check("best", Selection::Best);
    check(" Auto ", Selection::Best);
    check("cpu", Selection::Cpu);
    check("CPU", Selection::Cpu);
    check("gpu", Selection::Gpu);
    check("software", Selection::Software);
    check("0", Selection::Index(0));
    check("12", Selection::Index(12));
    check("llvmpipe", Selection::Name("llvmpipe".to_owned()));
    check("GeForce RTX", Selection::Name("GeForce RTX".to_owned()));
    check("-1", Selection::Name("-1".to_owned()));
}

#[test]
fn what_is_not_there_is_an_error_that_lists_what_is() {
    for asked in ["no such adapter", "4096"] {
        let selection = asked.parse::<Selection>().expect("every word is a selection");
        let error = Device::builder().selection(selection).open().expect_err("there is no such device");
        let message = error.to_string();
        assert!(matches!(error, Error::NoDevice { .. }), "{message}");
        assert!(message.contains(asked) && message.contains("cpu"), "{message}");
        for info in Device::list() {
            assert!(message.contains(&info.name), "`{}` is not in: {message}", info.name);
        }
    }
}

#[test]
fn hardware_is_listed_before_software() {
    let kinds: Vec<_> = Device::list().into_iter().map(|info| info.kind).collect();
    assert!(kinds.is_sorted_by_key(|kind| *kind == DeviceKind::Software), "{kinds:?}");
    assert!(!kinds.contains(&DeviceKind::Cpu), "the cpu executor is no adapter: {kinds:?}");
}

#[test]
fn best_is_hardware_or_the_cpu() {
    let device = Device::builder().open().expect("there is always the cpu");
    assert_ne!(device.info().kind, DeviceKind::Software, "a software adapter is only used on request");
}

#[test]
fn the_cpu_tells_its_threads() {
    let device = Device::builder().selection(Selection::Cpu).threads(3).open().expect("three threads");
    assert_eq!(device.info().to_string(), "cpu, 3 threads (cpu, rust)");
    assert_eq!((device.info().kind.executor(), &device.info().fallback), ("cpu", &None), "asked for");
}

#[test]
fn a_name_in_any_case() {
    let Some(gpu) = crate::gpu::gpu() else { return };
    let part = gpu.info().name.to_uppercase();
    let device = Device::builder().selection(Selection::Name(part)).open().expect("it was opened before");
    assert_eq!(device.info().name, gpu.info().name, "the same adapter");
}

/// The variable is read in a separate process, since the threads of this one share their environment.
#[test]
fn brisk_device() {
    if std::env::var_os("BRISK_DEVICE_PROBE").is_some() {
        let word = match Device::best() {
            Ok(device) => device.info().kind.to_string(),
            Err(error) => error.to_string(),
        };
        std::fs::write(std::env::var_os("BRISK_DEVICE_PROBE").expect("set just now"), word).expect("the file can be written");
        return;
    }
    let probe = |word: &str| {
        let answer = std::env::temp_dir().join(format!("brisk-device-{}-{}", std::process::id(), word.len()));
        let status = std::process::Command::new(std::env::current_exe().expect("this test"))
            .args(["--exact", "selection::brisk_device"])
            .envs([("BRISK_DEVICE", word.as_ref()), ("BRISK_DEVICE_PROBE", answer.as_os_str())])
            .stdout(std::process::Stdio::null())
            .stderr(std::process::Stdio::null())
            .status()
            .expect("this test runs again");
        assert!(status.success(), "the probe of `{word}`");
        let said = std::fs::read_to_string(&answer).expect("the probe answered");
        std::fs::remove_file(answer).expect("the answer is ours");
        said
    };
    assert_eq!(probe("cpu"), "cpu");
    assert!(probe("no such card").starts_with("no device `no such card`; available are "), "an unknown name is an error");
}

/// The adapter reports whether f16 accumulation is used: never on a software adapter.
#[test]
fn adding_in_f16_is_allowed_on_request() {
    let cpu = Device::builder().selection(Selection::Cpu).threads(1).allow_f16_accumulation().open();
    assert!(cpu.expect("the cpu does without").adapter().is_none(), "all is f32 on the cpu");
    let Some(name) = gpu().map(|gpu| gpu.info().name.clone()) else { return };
    let builder = || Device::builder().selection(Selection::Name(name.clone()));
    let adapter_of = |builder: DeviceBuilder| builder.open().expect("it opens").adapter().expect("a GPU");
    assert!(!adapter_of(builder()).f16_accumulation, "not unless asked for");
    assert!(adapter_of(builder().allow_f16_accumulation()).f16_accumulation);
}
