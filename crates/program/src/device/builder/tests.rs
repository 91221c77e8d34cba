use super::{Device, DeviceBuilder, DeviceInfo, DeviceKind, Error};

fn adapter(name: &str, kind: DeviceKind) -> (DeviceInfo, ()) {
    (DeviceInfo::new(name.to_owned(), kind, "test".to_owned()), ())
}

/// Opens adapters that are not called broken, using a CPU executor in place of a GPU.
fn open(info: DeviceInfo, _: &()) -> Result<Device, Error> {
    if info.name.starts_with("broken") {
        return Err(Error::Open { adapter: info.name, reason: "no".to_owned() });
    }
    DeviceBuilder::default().threads(1).open_cpu(info.fallback)
}

#[test]
fn best_passes_over_what_does_not_open() {
    let best = |adapters| DeviceBuilder::default().threads(1).open_best(adapters, open).expect("there is always the cpu");
    let fine = best(vec![adapter("fine", DeviceKind::Gpu), adapter("broken", DeviceKind::Gpu)]);
    assert_eq!(fine.info().fallback, None, "the first opens");
    for others in [vec![], vec![adapter("fine", DeviceKind::Gpu)], vec![adapter("software", DeviceKind::Software)]] {
        let mut adapters = vec![adapter("broken one", DeviceKind::Gpu), adapter("broken two", DeviceKind::Gpu)];
        adapters.extend(others);
        let device = best(adapters);
        let reason = device.info().fallback.as_deref().expect("a gpu was passed over");
        assert!(reason.contains("broken one"), "{reason}");
        assert!(device.info().to_string().ends_with(reason), "{}", device.info());
    }
    assert_eq!(best(vec![adapter("software", DeviceKind::Software)]).info().fallback, None, "best does not consider software");
}
