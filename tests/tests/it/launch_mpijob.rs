//! The manifest for Kubernetes, compared with the MPI operator's `MPIJob` v2beta1: its schema, and the conditions that its
//! controller checks.

use yaml_rust2::{Yaml, YamlLoader};

const MANIFEST: &str = include_str!("../../../examples/launch/data_parallel.mpijob.yaml");

/// Names that are allowed at a position.
type Known = &'static [&'static str];

#[rustfmt::skip]
const SPEC: Known = &[
    "launcherCreationPolicy", "mpiImplementation", "mpiReplicaSpecs", "runLauncherAsWorker", "runPolicy", "slotsPerWorker", "sshAuthMountPath",
];
#[rustfmt::skip]
const RUN_POLICY: Known = &[
    "activeDeadlineSeconds", "backoffLimit", "cleanPodPolicy", "managedBy", "schedulingPolicy", "suspend", "ttlSecondsAfterFinished",
];
const REPLICA: Known = &["replicas", "restartPolicy", "template"];

/// All errors in a manifest.
fn findings(manifest: &str) -> Vec<String> {
    let mut found = Findings(Vec::new());
    let documents = YamlLoader::load_from_str(manifest).unwrap_or_default();
    let [job] = documents.as_slice() else { return vec!["it is not one document of YAML".to_owned()] };
    let spec = &job["spec"];
    found.one_of("apiVersion", &job["apiVersion"], &["kubeflow.org/v2beta1"]);
    found.one_of("kind", &job["kind"], &["MPIJob"]);
    found.known("spec", spec, SPEC);
    found.known("runPolicy", &spec["runPolicy"], RUN_POLICY);
    found.known("mpiReplicaSpecs", &spec["mpiReplicaSpecs"], &["Launcher", "Worker"]);
    found.one_of("cleanPodPolicy", &spec["runPolicy"]["cleanPodPolicy"], &["None", "Running", "All"]);
    found.one_of("launcherCreationPolicy", &spec["launcherCreationPolicy"], &["AtStartup", "WaitForWorkersReady"]);
    found.one_of("mpiImplementation", &spec["mpiImplementation"], &["OpenMPI", "Intel", "MPICH"]);
    found.at_least("backoffLimit", &spec["runPolicy"]["backoffLimit"], 0);
    let slots = found.at_least("slotsPerWorker", &spec["slotsPerWorker"], 1);
    found.that(spec["sshAuthMountPath"].as_str().is_some_and(|path| path.starts_with('/')), "sshAuthMountPath is no folder");

    let [launcher, worker] = ["Launcher", "Worker"].map(|name| {
        let replica = &spec["mpiReplicaSpecs"][name];
        found.known(name, replica, REPLICA);
        found.one_of("restartPolicy", &replica["restartPolicy"], &["Never", "OnFailure"]);
        found.pod(name, &replica["template"]["spec"]);
        replica
    });
    found.that(launcher["replicas"].as_i64() == Some(1), "there is one Launcher");
    let n_workers = found.at_least("replicas of Worker", &worker["replicas"], 1);

    // The last worker's name must be a valid host name.
    let host = format!("{}-worker-{}", job["metadata"]["name"].as_str().unwrap_or_default(), n_workers - 1);
    let is_label = host.len() <= 63 && host.starts_with(|first: char| first.is_ascii_lowercase());
    let is_label = is_label && host.chars().all(|char| char.is_ascii_lowercase() || char.is_ascii_digit() || char == '-');
    found.that(is_label, &format!("`{host}` is no name of a host"));

    // What the documentation promises: as many ranks as there are slots, and a run that resumes.
    let args: Vec<&str> =
        launcher["template"]["spec"]["containers"][0]["args"].as_vec().into_iter().flatten().filter_map(Yaml::as_str).collect();
    let n_ranks = args.iter().position(|arg| *arg == "-n").and_then(|at| args.get(at + 1)?.parse::<i64>().ok());
    found.that(n_ranks == Some(slots * n_workers), &format!("-n is {n_ranks:?}, and there is room for {}", slots * n_workers));
    found.that(args.windows(2).any(|pair| pair == ["--resume", "auto"]), "a launcher that is started again begins anew");
    found.0
}

struct Findings(Vec<String>);

impl Findings {
    fn that(&mut self, holds: bool, otherwise: &str) {
        self.0.extend((!holds).then(|| otherwise.to_owned()));
    }

    fn one_of(&mut self, name: &str, value: &Yaml, allowed: Known) {
        self.that(
            value.as_str().is_some_and(|value| allowed.contains(&value)),
            &format!("{name} is {value:?}, expected one of {allowed:?}"),
        );
    }

    /// The number, or 0 if it is not one.
    fn at_least(&mut self, name: &str, value: &Yaml, least: i64) -> i64 {
        let number = value.as_i64().filter(|number| *number >= least);
        self.that(number.is_some(), &format!("{name} is {value:?}, expected a whole number from {least}"));
        number.unwrap_or(0)
    }

    fn known(&mut self, place: &str, value: &Yaml, known: Known) {
        self.that(value.as_hash().is_some(), &format!("{place} has nothing in it"));
        for name in value.as_hash().into_iter().flat_map(|hash| hash.keys()).map(|name| name.as_str().unwrap_or_default()) {
            self.that(known.contains(&name), &format!("{place} has no `{name}`; it has {known:?}"));
        }
    }

    /// Containers with a name and an image, whose mounts are volumes of the pod.
    fn pod(&mut self, place: &str, pod: &Yaml) {
        let volumes: Vec<_> = pod["volumes"].as_vec().into_iter().flatten().map(|volume| &volume["name"]).collect();
        let containers = pod["containers"].as_vec().map_or(&[][..], Vec::as_slice);
        self.that(!containers.is_empty(), &format!("{place} has no container"));
        for container in containers {
            let is_named = ["name", "image"].iter().all(|name| container[*name].as_str().is_some_and(|text| !text.is_empty()));
            self.that(is_named, &format!("a container of {place} lacks a name or an image"));
            for mount in container["volumeMounts"].as_vec().into_iter().flatten() {
                self.that(volumes.contains(&&mount["name"]), &format!("{place} has no volume {:?}", mount["name"]));
            }
        }
    }
}

#[test]
fn the_operator_takes_the_manifest() {
    assert_eq!(findings(MANIFEST), Vec::<String>::new());
}

/// The pods of a manifest, each validated by the schemas of Kubernetes; no other properties are allowed. The schema of `MPIJob`
/// itself is in no package.
#[cfg(all(target_os = "linux", feature = "all-formats"))]
const VALIDATE: &str = "
import sys, kubernetes_validate, yaml
for name, replica in yaml.safe_load(sys.stdin)['spec']['mpiReplicaSpecs'].items():
    pod = {'apiVersion': 'v1', 'kind': 'Pod', 'metadata': {'name': name.lower()}, **replica['template']}
    kubernetes_validate.validate(pod, kubernetes_validate.latest_version(), strict=True)
";

#[cfg(all(target_os = "linux", feature = "all-formats"))]
#[test]
fn kubernetes_takes_the_pods() {
    use std::io::Write as _;
    use std::process::{Command, Stdio};

    use crate::installed::installed;
    use crate::launch_slurm::JOBS;

    // In Python's own folders, or where `cargo xtask test` installs it.
    let find = format!("import sys; sys.path.append('{}/../kubernetes-validate')", env!("CARGO_TARGET_TMPDIR"));
    let import = format!("{find}; import kubernetes_validate; print('found')");
    if installed(&["python3"], &["-c", &import], "found", JOBS, "the pods of the MPIJob by the schemas of Kubernetes").is_none() {
        return;
    }
    let validated = |manifest: &str| {
        let mut python = Command::new("python3");
        python.args(["-c", &format!("{find}{VALIDATE}")]).stdin(Stdio::piped()).stderr(Stdio::piped());
        let mut python = python.spawn().expect("it was found");
        python.stdin.take().expect("it is piped").write_all(manifest.as_bytes()).expect("it reads the manifest");
        let output = python.wait_with_output().expect("it ends");
        (output.status.success(), String::from_utf8_lossy(&output.stderr).into_owned())
    };
    let (is_taken, said) = validated(MANIFEST);
    assert!(is_taken, "{said}");
    for (from, to, part) in [
        ("readinessProbe", "readyProbe", "'readyProbe' was unexpected"),
        ("port: 2222", "port: {number: 2222}", "{'number': 2222} is not"),
        ("command: [mpirun]", "command: mpirun", "'mpirun' is not of type 'array'"),
        ("- name: launcher\n", "- title: launcher\n", "'name' is a required property"),
    ] {
        let (is_taken, said) = validated(&MANIFEST.replacen(from, to, 1));
        assert!(MANIFEST.contains(from) && !is_taken && said.contains(part), "{to}: {said}");
    }
}

#[test]
fn what_it_would_refuse_is_found() {
    #[track_caller]
    fn check(from: &str, to: &str, part: &str) {
        assert!(MANIFEST.contains(from), "`{from}` is in the manifest");
        let found = findings(&MANIFEST.replacen(from, to, 1));
        assert!(found.len() == 1 && found[0].contains(part), "{found:?}, expected `{part}`");
    }
    check("spec:", "spec: [", "it is not one document of YAML");
    check("v2beta1\n", "v1\n", "apiVersion is String(\"kubeflow.org/v1\")");
    check("cleanPodPolicy: Running", "cleanPodPolicy: Some", "cleanPodPolicy is String(\"Some\")");
    check("backoffLimit: 3", "backoffLimits: 3\n    backoffLimit: 3", "runPolicy has no `backoffLimits`");
    check("replicas: 1", "replicas: 2", "there is one Launcher");
    check("restartPolicy: OnFailure", "restartPolicy: ExitCode", "restartPolicy is String(\"ExitCode\")");
    check("slotsPerWorker: 2", "slotsPerWorker: 4", "-n is Some(4), and there is room for 8");
    check("name: brisk-data", "name: Brisk-data", "`Brisk-data-parallel-worker-1` is no name of a host");
    check("image: registry", "picture: registry", "a container of Launcher lacks a name or an image");
    check("- name: runs\n                  m", "- name: walks\n                  m", "Worker has no volume String(\"walks\")");
    check("- auto", "- none", "begins anew");
}
