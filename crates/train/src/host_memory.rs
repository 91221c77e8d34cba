//! How much memory this process may still allocate, according to the operating system: by machine, container and limits.

use std::fs::read_to_string;
use std::path::{Path, PathBuf};

use brisk_nn::tensor::program::{Device, DeviceKind};

/// Whether the device's memory is the host's. If memory that was promised there turns out to be missing, the process is killed
/// instead of getting an error.
pub(crate) fn is_used_by(device: &Device) -> bool {
    device.info().kind != DeviceKind::Gpu
}

/// Bytes that this process may still allocate, if the system says so: on Linux.
pub(crate) fn available_bytes() -> Option<usize> {
    if cfg!(not(target_os = "linux")) {
        // Wine exposes the files of its host to programs.
        return None;
    }
    let machine = read_to_string("/proc/meminfo").ok().and_then(|meminfo| kilobytes(&meminfo, "MemAvailable:"));
    let container = read_to_string("/proc/self/cgroup").ok().and_then(|groups| of_cgroups(Path::new("/sys/fs/cgroup"), &groups));
    let limits = read_to_string("/proc/self/limits").ok().zip(read_to_string("/proc/self/status").ok());
    let process = limits.and_then(|(limits, status)| of_limits(&limits, &status));
    [machine, container, process].into_iter().flatten().min()
}

/// A number that is the same for processes that share a host's memory; `None` where the system does not say.
pub(crate) fn host_id() -> Option<String> {
    if cfg!(not(target_os = "linux")) {
        return None;
    }
    read_to_string("/proc/sys/kernel/random/boot_id").ok()
}

/// The bytes of a line such as `MemAvailable:   23112784 kB`.
fn kilobytes(report: &str, name: &str) -> Option<usize> {
    let line = report.lines().find_map(|line| line.strip_prefix(name))?;
    line.trim().strip_suffix("kB")?.trim().parse::<usize>().ok()?.checked_mul(1024)
}

/// What the limits of this process's control groups leave; `groups` is `/proc/self/cgroup`, `root` where the groups are mounted.
fn of_cgroups(root: &Path, groups: &str) -> Option<usize> {
    groups.lines().filter_map(|line| of_cgroup_line(root, line)).min()
}

/// The same for one line: `0::/path` for version 2, `4:memory:/path` for version 1.
fn of_cgroup_line(root: &Path, line: &str) -> Option<usize> {
    let (controllers, path) = line.split_once(':')?.1.split_once(':')?;
    let (root, limit, usage, cache) = match controllers {
        "" => (root.to_owned(), "memory.max", "memory.current", "inactive_file "),
        "memory" => (root.join("memory"), "memory.limit_in_bytes", "memory.usage_in_bytes", "total_inactive_file "),
        _ => return None,
    };
    // Each group is within the limits of its ancestors. In a container the path may be the host's, and only the root exists.
    let group = root.join(path.trim_start_matches('/'));
    let groups = group.ancestors().take_while(|group| group.starts_with(&root)).map(PathBuf::from);
    groups.filter_map(|group| of_group(&group, limit, usage, cache)).min()
}

fn of_group(group: &Path, limit: &str, usage: &str, cache: &str) -> Option<usize> {
    let number = |file: &str| read_to_string(group.join(file)).ok()?.trim().parse::<usize>().ok();
    // `max` is not a number, and means that there is no limit.
    let (limit, usage) = (number(limit)?, number(usage)?);
    // The system reclaims pages of files that have not been read lately when memory is needed.
    let stat = read_to_string(group.join("memory.stat")).unwrap_or_default();
    let cached = stat.lines().find_map(|line| line.strip_prefix(cache)?.trim().parse::<usize>().ok()).unwrap_or(0);
    Some(limit.saturating_sub(usage.saturating_sub(cached)))
}

/// What the limit on the address space (`ulimit -v`) leaves, given `/proc/self/limits` and `/proc/self/status`.
fn of_limits(limits: &str, status: &str) -> Option<usize> {
    let line = limits.lines().find_map(|line| line.strip_prefix("Max address space"))?;
    let limit: usize = line.split_whitespace().next()?.parse().ok()?;
    Some(limit.saturating_sub(kilobytes(status, "VmSize:")?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_line_of_what_is_available() {
        let report = "MemTotal:       24554932 kB\nMemFree:         1 kB\nMemAvailable:   23112784 kB\n";
        assert_eq!(kilobytes(report, "MemAvailable:"), Some(23_112_784 * 1024), "in bytes");
        for report in ["", "MemAvailable:", "MemAvailable: many kB", "MemAvailable: 3 MB"] {
            assert_eq!(kilobytes(report, "MemAvailable:"), None, "{report:?} says nothing");
        }
    }

    fn write(root: &Path, group: &str, files: &[(&str, &str)]) {
        let group = root.join(group);
        std::fs::create_dir_all(&group).expect("a folder for a while");
        for (name, text) in files {
            std::fs::write(group.join(name), text).expect("a file for a while");
        }
    }

    #[test]
    fn the_smallest_of_the_groups_counts() {
        let root = tempfile::tempdir().expect("a folder for a while");
        let root = root.path();
        write(
            root,
            "job",
            &[("memory.max", "1000\n"), ("memory.current", "600\n"), ("memory.stat", "anon 1\ninactive_file 100\n")],
        );
        write(root, "job/task", &[("memory.max", "max\n"), ("memory.current", "50\n")]);
        assert_eq!(of_cgroups(root, "0::/job/task\n"), Some(500), "the group above has a limit, of which 500 bytes are in use");
        assert_eq!(of_cgroups(root, "0::/elsewhere\n"), None, "no limit");
        write(root, "", &[("memory.max", "300\n"), ("memory.current", "400\n")]);
        assert_eq!(of_cgroups(root, "0::/job/task\n"), Some(0), "the root of a container is over its limit");
    }

    #[test]
    fn the_first_version_of_control_groups() {
        let root = tempfile::tempdir().expect("a folder for a while");
        let files = [
            ("memory.limit_in_bytes", "1000\n"),
            ("memory.usage_in_bytes", "900\n"),
            ("memory.stat", "inactive_file 1\ntotal_inactive_file 200\n"),
        ];
        write(root.path(), "memory/docker/1a", &files);
        assert_eq!(of_cgroups(root.path(), "5:cpu:/x\n4:memory:/docker/1a\n0::/\n"), Some(300));
    }

    #[test]
    fn the_limit_of_the_process() {
        let limits =
            |soft| format!("Limit  Soft Limit  Hard Limit  Units\nMax address space         {soft}       unlimited   bytes\n");
        let status = "Name:\ttest\nVmSize:\t    1000 kB\n";
        assert_eq!(of_limits(&limits("2048000"), status), Some(1_024_000));
        assert_eq!(of_limits(&limits("unlimited"), status), None, "no limit");
    }

    #[test]
    fn linux_says_what_is_available() {
        let available = available_bytes();
        assert_eq!(available.is_some(), cfg!(target_os = "linux"), "{available:?}");
        assert_eq!(host_id().is_some(), cfg!(target_os = "linux"), "{:?}", host_id());
    }
}
