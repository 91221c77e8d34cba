//! The bindings, parameters, constants and entry points of every module are those that the Rust side names, and every WGSL file
//! is a part of one.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use brisk_kernels::*;

use crate::pipeline::parse;
use crate::samples::{adapters, dispatches, every_sample};

#[test]
fn every_file_is_a_part_of_a_module() {
    let used: BTreeSet<String> = adapters()
        .iter()
        .flat_map(|adapter| every_sample().flat_map(|kernel| dispatches(&*kernel, adapter)))
        .flat_map(|dispatch| dispatch.wgsl.parts().iter().map(|part| part.text().to_owned()).collect::<Vec<_>>())
        .collect();
    for path in wgsl_files() {
        let text = std::fs::read_to_string(&path).expect("a readable file");
        assert!(used.contains(&text), "no sample's module has {}", path.display());
    }
}

/// Every WGSL file of the crate; each family has a folder.
fn wgsl_files() -> Vec<PathBuf> {
    let entries = |folder: &Path| -> Vec<PathBuf> {
        let entries = std::fs::read_dir(folder).expect("a readable folder");
        entries.map(|entry| entry.expect("a readable entry").path()).collect()
    };
    let families = entries(&Path::new(env!("CARGO_MANIFEST_DIR")).join("src")).into_iter().filter(|path| path.is_dir());
    let files = families.flat_map(|family| entries(&family));
    files.filter(|path| path.extension().is_some_and(|extension| extension == "wgsl")).collect()
}

#[test]
fn bindings_and_params_are_those_of_the_dispatch() {
    let mut seen = BTreeSet::new();
    for adapter in &adapters() {
        for kernel in every_sample() {
            for dispatch in dispatches(&*kernel, adapter) {
                check_args(&*kernel, &dispatch);
                if seen.insert((dispatch.wgsl.source(), dispatch.entry, dispatch.reads.clone(), dispatch.writes.clone())) {
                    check(&dispatch, adapter);
                }
            }
        }
    }
}

/// Checks that every bound argument exists, is written only if it may be, and that none is on both lists.
fn check_args(kernel: &dyn Kernel, dispatch: &Dispatch) {
    let args = kernel.args();
    for &read in &dispatch.reads {
        assert!(read < args.len(), "{kernel:?} reads argument {read} of {}", args.len());
        assert!(!dispatch.writes.contains(&read), "{kernel:?} reads and writes `{}` in one dispatch", args[read].name);
    }
    for &write in &dispatch.writes {
        assert!(args[write].access.writes(), "{kernel:?} writes `{}`, which is only read", args[write].name);
    }
    let n_workgroups = dispatch.workgroups.iter().max().copied().unwrap_or(0);
    assert!(
        dispatch.workgroups.iter().all(|&n| n > 0) && n_workgroups <= MAX_WORKGROUPS,
        "{kernel:?}: {:?}",
        dispatch.workgroups
    );
}

fn check(dispatch: &Dispatch, adapter: &Adapter) {
    let label = dispatch.label;
    let (module, info) = parse(label, &dispatch.wgsl.source(), adapter.features);
    let entry = module.entry_points.iter().position(|entry| entry.name == dispatch.entry);
    let entry = entry.unwrap_or_else(|| panic!("{label}: no entry point `{}`", dispatch.entry));
    let function = info.get_entry_point(entry);

    let mut bound: Vec<_> = module
        .global_variables
        .iter()
        .filter_map(|(handle, variable)| variable.binding.as_ref().map(|binding| (binding.binding, handle, variable)))
        .collect();
    bound.sort_by_key(|(binding, ..)| *binding);
    let uniform = usize::from(!dispatch.params.is_empty());
    assert_eq!(bound.len(), uniform + dispatch.reads.len() + dispatch.writes.len(), "{label}: number of bindings");
    for (i, (binding, handle, variable)) in bound.into_iter().enumerate() {
        assert_eq!(binding as usize, i, "{label}: bindings leave no gap");
        assert_eq!(variable.binding.as_ref().map(|binding| binding.group), Some(0), "{label}: group");
        let name = variable.name.as_deref().unwrap_or("?");
        // An argument that fills an unused second binding stands in for one that this entry point does not have.
        let filled = i.checked_sub(uniform).and_then(|read| dispatch.reads.get(read));
        let stands_in = filled.is_some_and(|arg| dispatch.reads.iter().filter(|read| *read == arg).count() > 1);
        assert!(stands_in || !function[handle].is_empty(), "{label}: `{name}` is bound and not used by `{}`", dispatch.entry);
        let load_store = naga::StorageAccess::LOAD | naga::StorageAccess::STORE;
        let expected = match i {
            _ if i < uniform => naga::AddressSpace::Uniform,
            _ if i < uniform + dispatch.reads.len() => naga::AddressSpace::Storage { access: naga::StorageAccess::LOAD },
            _ => naga::AddressSpace::Storage { access: load_store },
        };
        assert_eq!(variable.space, expected, "{label}: address space of `{name}`");
        if i < uniform {
            let size = module.types[variable.ty].inner.size(module.to_ctx());
            assert_eq!(size as usize, dispatch.params.len(), "{label}: bytes of the params struct");
        }
    }
    for (constant, _) in &dispatch.constants {
        let known = module.overrides.iter().any(|(_, known)| known.name.as_deref() == Some(constant));
        assert!(known, "{label}: no `override {constant}`");
    }
}
