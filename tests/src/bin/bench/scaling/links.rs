use std::time::Duration;

use anyhow::{Result, bail};
use brisk_replicate::Link;

/// A link that the command line describes.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct OwnLink {
    pub(crate) latency_us: Option<f64>,
    pub(crate) gbit_per_s: Option<f64>,
}

impl OwnLink {
    pub(crate) fn is_given(&self) -> bool {
        *self != Self::default()
    }
}

/// What is typical: Ethernet by TCP with 94 of 100 bits for the values, InfiniBand by its own protocol, and PCIe 4.0 with 16 lanes where values go through host memory,
/// there and back, with a submission of the device's queue each way.
const TYPICAL: [(&str, f64, f64); 6] = [
    ("Ethernet, 1 Gbit/s", 50.0, 0.94),
    ("Ethernet, 10 Gbit/s", 30.0, 9.4),
    ("Ethernet, 25 Gbit/s", 20.0, 23.5),
    ("Ethernet, 100 Gbit/s", 10.0, 94.0),
    ("InfiniBand HDR, 200 Gbit/s", 1.5, 190.0),
    ("PCIe 4.0 x16, through the host", 40.0, 100.0),
];

/// The typical links, the one that was measured here, and the command line's.
pub(super) fn links(measured: Option<Link>, own: OwnLink) -> Result<Vec<(String, Link)>> {
    let link = |(name, latency_us, gbit_per_s): (&str, f64, f64)| {
        let latency = Duration::from_secs_f64(latency_us * 1e-6);
        (name.to_owned(), Link { latency, bytes_per_s: gbit_per_s * 1e9 / 8.0 })
    };
    let mut links: Vec<_> = measured.map(|link| ("threads of this machine, as measured".to_owned(), link)).into_iter().collect();
    links.extend(TYPICAL.map(link));
    match own {
        OwnLink { latency_us: Some(latency), gbit_per_s: Some(rate) } => links.push(link(("as given", latency, rate))),
        OwnLink { latency_us: None, gbit_per_s: None } => {}
        _ => bail!("a link has both, --latency-us and --gbit"),
    }
    Ok(links)
}
