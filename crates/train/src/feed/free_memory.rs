use brisk_nn::tensor::program::{Device, DeviceKind};

/// The share of free memory that rows may take; the rest is for activations, staging and everybody else.
const SHARE: f64 = 0.7;

/// Bytes that rows may take on a device whose memory is the host's, if the system says how much is free. Memory that is promised and not there
/// would end the process rather than give an error.
pub(crate) fn budget_bytes(device: &Device) -> Option<usize> {
    if device.info().kind == DeviceKind::Gpu {
        return None;
    }
    let meminfo = std::fs::read_to_string("/proc/meminfo").ok()?;
    Some((available_bytes(&meminfo)? as f64 * SHARE) as usize)
}

/// `MemAvailable` of Linux's report.
fn available_bytes(meminfo: &str) -> Option<usize> {
    let line = meminfo.lines().find_map(|line| line.strip_prefix("MemAvailable:"))?;
    line.trim().strip_suffix("kB")?.trim().parse::<usize>().ok()?.checked_mul(1024)
}

#[cfg(test)]
mod tests {
    use super::available_bytes;

    #[test]
    fn the_line_of_what_is_available() {
        let report = "MemTotal:       24554932 kB\nMemFree:         1 kB\nMemAvailable:   23112784 kB\n";
        assert_eq!(available_bytes(report), Some(23_112_784 * 1024), "in bytes");
        for report in ["", "MemAvailable:", "MemAvailable: many kB", "MemAvailable: 3 MB"] {
            assert_eq!(available_bytes(report), None, "{report:?} says nothing");
        }
    }
}
