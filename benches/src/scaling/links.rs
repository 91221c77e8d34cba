use std::time::Duration;

use brisk_replicate::Link;

use crate::command_line::Scaling;

/// Typical links: Ethernet with TCP, where 94 of 100 bits are payload; InfiniBand with its own protocol; PCIe 4.0 with 16 lanes,
/// where values are copied to host memory and back, with one queue submission in each direction.
const TYPICAL: [(&str, f64, f64); 6] = [
    ("Ethernet, 1 Gbit/s", 50.0, 0.94),
    ("Ethernet, 10 Gbit/s", 30.0, 9.4),
    ("Ethernet, 25 Gbit/s", 20.0, 23.5),
    ("Ethernet, 100 Gbit/s", 10.0, 94.0),
    ("InfiniBand HDR, 200 Gbit/s", 1.5, 190.0),
    ("PCIe 4.0 x16, through the host", 40.0, 100.0),
];

/// The measured link of this machine, the typical links, and the link that the command line describes.
pub(super) fn links(measured: Option<Link>, scaling: &Scaling) -> Vec<(String, Link)> {
    let link = |(name, latency_us, gbit_per_s): (&str, f64, f64)| {
        let latency = Duration::from_secs_f64(latency_us * 1e-6);
        (name.to_owned(), Link { latency, bytes_per_s: gbit_per_s * 1e9 / 8.0 })
    };
    let mut links: Vec<_> = measured.map(|link| ("threads of this machine, as measured".to_owned(), link)).into_iter().collect();
    links.extend(TYPICAL.map(link));
    links.extend(scaling.latency_us.zip(scaling.gbit).map(|(latency, rate)| link(("as given", latency, rate))));
    links
}
