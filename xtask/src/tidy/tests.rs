//! Each rule on a workspace that follows it, and on workspaces that break it.

use super::archives::Archive;
use super::source::code_lines;
use super::workspace::{File, Workspace};
use super::{Rule, archives, arrows, circles, docs, kernels, manifests, rooms, shaders, source, weight, workflows};
use crate::metadata::Package;

/// Two crates and an xtask that follow all rules.
fn sound() -> Workspace {
    let package = |name: &str, folder: &str, dependencies: &[&str]| Package {
        name: name.into(),
        folder: folder.into(),
        description: "Makes it faster.".into(),
        license: "MIT OR Apache-2.0".into(),
        repository: "https://github.com/brisk-rs/brisk".into(),
        keywords: vec!["gpu".into()],
        categories: vec!["science".into()],
        has_docs_settings: true,
        features: Vec::new(),
        dependencies: dependencies.iter().map(|&name| name.into()).collect(),
    };
    let library = "#![doc = include_str!(\"../README.md\")]\n#![forbid(unsafe_code)]\n";
    let files = [
        ("crates/table/README.md", "# brisk-table"),
        ("crates/table/src/lib.rs", library),
        ("crates/kernels/README.md", "# brisk-kernels"),
        ("crates/kernels/src/lib.rs", library),
        ("crates/kernels/src/product/matmul.rs", "const SHADER: &str = include_str!(\"matmul.wgsl\");"),
        ("crates/kernels/src/product/matmul_cpu.rs", ""),
        ("crates/kernels/src/product/matmul.wgsl", ""),
        ("crates/kernels/src/product/matmul_direct.wgsl", ""),
        ("crates/kernels/tests/it/matmul.rs", ""),
        ("Cargo.toml", "[workspace.package]\nrust-version = \"1.95\"\n"),
        ("rustfmt.toml", "max_width = 130\n"),
        ("xtask/src/main.rs", "fn main() { println!(\"a program prints\"); }"),
    ];
    Workspace {
        packages: vec![
            package("brisk-table", "crates/table", &["brisk-loader", "memmap2"]),
            package("brisk-kernels", "crates/kernels", &["wgpu"]),
            package("xtask", "xtask", &["anyhow"]),
        ],
        files: files.map(|(path, text)| File { path: path.into(), text: text.into() }).into(),
        trees: vec![["one v1", "two v2"].map(String::from).into(); 4],
        archives: vec![Archive {
            folder: "crates/table".into(),
            files: ["LICENSE-APACHE", "LICENSE-MIT", "README.md", "src/lib.rs"].map(|path| (path.into(), 200_000)).into(),
        }],
        actionlint: String::new(),
    }
}

/// Checks that `rule` finds nothing in a sound workspace, and `expected` (path:line and a part of the message) after `change`.
#[track_caller]
fn check(rule: Rule, change: impl Fn(&mut Workspace), expected: &[(&str, &str)]) {
    assert_eq!(rule(&sound()), [], "a sound workspace");
    let mut broken = sound();
    change(&mut broken);
    let found: Vec<String> = rule(&broken).iter().map(ToString::to_string).collect();
    assert_eq!(found.len(), expected.len(), "{found:?}");
    for (found, (place, part)) in found.iter().zip(expected) {
        assert!(
            found.starts_with(&format!("{place}: ")) && found.contains(part),
            "found `{found}`, expected `{place}: … {part} …`"
        );
    }
}

fn with(path: &'static str, text: impl Into<String>) -> impl Fn(&mut Workspace) {
    let text = text.into();
    move |workspace| {
        workspace.files.retain(|file| file.path != path);
        workspace.files.push(File { path: path.into(), text: text.clone() });
    }
}

fn without(path: &'static str) -> impl Fn(&mut Workspace) {
    move |workspace| workspace.files.retain(|file| file.path != path)
}

fn depends(package: usize, on: &'static str) -> impl Fn(&mut Workspace) {
    move |workspace| workspace.packages[package].dependencies.push(on.into())
}

#[test]
fn arrows_only_point_down() {
    check(
        arrows::point_down,
        depends(0, "brisk-tensor"),
        &[("crates/table/Cargo.toml", "`table` depends on `tensor`; it may only depend on loader")],
    );
    check(
        arrows::point_down,
        depends(1, "brisk-loader"),
        &[("crates/kernels/Cargo.toml", "it may not depend on other brisk crates")],
    );
    check(arrows::point_down, depends(2, "brisk-table"), &[("xtask/Cargo.toml", "start a program")]);
    let newcomer = |workspace: &mut Workspace| workspace.packages[0].folder = "crates/newcomer".into();
    check(arrows::point_down, newcomer, &[("crates/newcomer/Cargo.toml", "is missing in the table of dependencies")]);
}

#[test]
fn wgpu_is_named_by_few() {
    check(arrows::wgpu_is_named_below, depends(0, "wgpu-types"), &[("crates/table/Cargo.toml", "depends on wgpu")]);
    let named = "//! wgpu::Device in a comment\nuse brisk_kernels::wgpu::Device;\n";
    check(arrows::wgpu_is_named_below, with("crates/table/src/gpu.rs", named), &[("crates/table/src/gpu.rs:2", "names wgpu")]);
}

#[test]
fn manifests_say_what_a_crate_is_for() {
    let undescribed = |workspace: &mut Workspace| workspace.packages[0].description = "(set below)".into();
    check(manifests::are_complete, undescribed, &[("crates/table/Cargo.toml", "no description")]);
    let unlicensed = |workspace: &mut Workspace| workspace.packages[1].license.clear();
    check(manifests::are_complete, unlicensed, &[("crates/kernels/Cargo.toml", "no licence")]);
    for change in [
        |package: &mut Package| package.keywords.clear(),
        |package: &mut Package| package.keywords = vec!["k".into(); 6],
        |package: &mut Package| package.keywords[0] = "k".repeat(21),
    ] {
        let changed = |workspace: &mut Workspace| change(&mut workspace.packages[0]);
        check(manifests::are_complete, changed, &[("crates/table/Cargo.toml", "write 1 to 5, of at most 20 characters")]);
    }
    let uncategorised = |workspace: &mut Workspace| workspace.packages[1].categories.clear();
    check(manifests::are_complete, uncategorised, &[("crates/kernels/Cargo.toml", "no categories")]);
    let nowhere = |workspace: &mut Workspace| workspace.packages[1].repository.clear();
    check(manifests::are_complete, nowhere, &[("crates/kernels/Cargo.toml", "no repository")]);
    let undocumented = |workspace: &mut Workspace| workspace.packages[1].has_docs_settings = false;
    check(manifests::are_complete, undocumented, &[("crates/kernels/Cargo.toml", "[package.metadata.docs.rs]")]);
    let renamed = |workspace: &mut Workspace| workspace.packages[0].name = "brisk-rows".into();
    check(manifests::are_complete, renamed, &[("crates/table/Cargo.toml", "named after its folder")]);
}

#[test]
fn crate_docs_are_the_readme_and_the_guides() {
    let rule = docs::readmes_are_the_short_front_pages;
    check(rule, without("crates/table/README.md"), &[("crates/table", "has no README.md")]);
    check(rule, with("crates/kernels/src/lib.rs", "//! Kernels.\n"), &[("crates/kernels/src/lib.rs", "include the README")]);
    check(rule, with("crates/table/README.md", "a line\n".repeat(66)), &[("crates/table/README.md", "66 lines, more than 65")]);
    check(rule, with("crates/table/README.md", "a line\n".repeat(65)), &[]);

    let (guide, rule) = ("crates/table/docs/tables.md", docs::guides_are_in_the_documentation);
    check(rule, with(guide, ""), &[(guide, "add a module with `#![doc = include_str!(\"../docs/tables.md\")]`")]);
    let included = |workspace: &mut Workspace| {
        with(guide, "")(workspace);
        with("crates/table/src/guide.rs", "#![doc = include_str!(\"../docs/tables.md\")]")(workspace);
    };
    check(rule, included, &[]);
}

#[test]
fn links_into_the_repository_lead_somewhere() {
    let link = |path: &str| format!("One\n[two](https://github.com/brisk-rs/brisk/{path}), three\n");
    let readme = "crates/table/README.md";
    for path in ["blob/main/xtask/src/main.rs#L3", "tree/main/xtask", "tree/main/xtask/src/", "issues/7"] {
        check(docs::links_lead_to_files, with(readme, link(path)), &[]);
    }
    for path in ["xtask/src/bench.rs", "xtask/s"] {
        let expected = format!("links to `{path}`");
        let text = link(&format!("blob/main/{path}#L3"));
        check(docs::links_lead_to_files, with(readme, text), &[("crates/table/README.md:2", &expected)]);
    }
}

#[test]
fn the_architecture_page_names_files() {
    let page = "One\n`xtask/src/main.rs`, `src/main.rs`, `NAME_cpu.rs`, `rows.rs`, `ain.rs`, `Rows`\n";
    let expected = ["`rows.rs`, which is not", "`ain.rs`, which is not"].map(|message| ("ARCHITECTURE.md:2", message));
    check(docs::architecture_names_files, with("ARCHITECTURE.md", page), &expected);
}

#[test]
fn links_of_readmes_work_on_crates_io() {
    let text = "[one](https://docs.rs), [two](#use)\n[three](docs/tables.md) [four]\n\n[four]: ../kernels\n";
    let expected =
        [("crates/table/README.md:2", "`docs/tables.md`, which is relative"), ("crates/table/README.md:4", "`../kernels`")];
    check(docs::links_of_readmes_are_absolute, with("crates/table/README.md", text), &expected);
}

#[test]
fn archives_have_licences_and_no_tests() {
    let rule = archives::hold_what_users_need;
    for needed in ["LICENSE-APACHE", "LICENSE-MIT", "README.md"] {
        let lacking = |workspace: &mut Workspace| workspace.archives[0].files.retain(|(path, _)| path != needed);
        check(rule, lacking, &[(&format!("crates/table/{needed}"), "is not published")]);
    }
    let adding =
        |path: &'static str, bytes| move |workspace: &mut Workspace| workspace.archives[0].files.push((path.to_owned(), bytes));
    check(rule, adding("tests/it/main.rs", 9), &[("crates/table/tests/it/main.rs", "exclude.workspace")]);
    check(rule, adding("benches/rows.rs", 9), &[("crates/table/benches/rows.rs", "exclude.workspace")]);
    check(rule, adding("src/names.rs", 200_001), &[("crates/table/src/names.rs", "200001 bytes, more than 200000")]);
    check(rule, adding("src/tests.rs", 9), &[]);
}

#[test]
fn workflows_install_the_declared_rust() {
    let path = ".github/workflows/ci.yml";
    let rule = workflows::use_the_declared_rust;
    check(rule, with(path, "env:\n  RUSTUP_TOOLCHAIN: \"1.95\"\nuses: actions/checkout@v5.1\n"), &[]);
    let other = "env:\n  RUSTUP_TOOLCHAIN: \"1.96\"\nrun: rustup toolchain install 1.95.1\nuses: dtolnay/rust-toolchain@1.95\n";
    let place = |line: usize| format!("{path}:{line}");
    check(rule, with(path, other), &[(&place(2), "uses Rust 1.96"), (&place(3), "uses Rust 1.95.1")]);
}

#[test]
fn what_actionlint_says_are_findings() {
    let said = |workspace: &mut Workspace| {
        let unknown = ".github/workflows/ci.yml:28:18: label \"ubuntu-2404\" is unknown: it is none of GitHub's [runner-label]";
        workspace.actionlint = format!("{unknown}\nno place\n");
    };
    let expected = [(".github/workflows/ci.yml:28", "is unknown: it is none"), (".github/workflows", "no place")];
    check(workflows::pass_actionlint, said, &expected);
}

#[test]
fn kernels_have_twins_and_tests() {
    let kernel = "crates/kernels/src/product/matmul.rs";
    check(kernels::have_twins, without("crates/kernels/src/product/matmul_cpu.rs"), &[(kernel, "no twin in plain Rust")]);
    check(kernels::have_twins, without("crates/kernels/tests/it/matmul.rs"), &[(kernel, "has no test")]);
    let stray = "crates/kernels/src/product/scan.wgsl";
    check(kernels::have_twins, with(stray, ""), &[(stray, "belongs to no kernel")]);
    // A longer name with the same beginning is another kernel.
    let alike = "crates/kernels/src/product/matmuls.wgsl";
    check(kernels::have_twins, with(alike, ""), &[(alike, "belongs to no kernel")]);
    // A kernel of another family does not own it.
    let elsewhere = "crates/kernels/src/loss/matmul.wgsl";
    check(kernels::have_twins, with(elsewhere, ""), &[(elsewhere, "belongs to no kernel")]);
    // A part shared by several modules must be included by at least one of them.
    let part = "crates/kernels/src/stored/rounding.wgsl";
    let shared = |workspace: &mut Workspace| {
        with(part, "")(workspace);
        with("crates/kernels/src/loss/huber.rs", "include_str!(\"../stored/rounding.wgsl\")")(workspace);
    };
    check(kernels::have_twins, with(part, ""), &[(part, "none includes it")]);
    check(kernels::have_twins, shared, &[]);
}

#[test]
fn functions_of_shaders_stand_once() {
    let tanh = "// Saturates.\nfn safe_tanh(v: f32) -> f32 {\n    let x = clamp(v, -10.0, 10.0);\n    return tanh(x);\n}\n";
    let (first, second) = ("crates/kernels/src/product/matmul.wgsl", "crates/kernels/src/product/matmul_direct.wgsl");
    let twice = |other: &'static str| {
        move |workspace: &mut Workspace| {
            with(first, tanh)(workspace);
            with(second, other)(workspace);
        }
    };
    // The same function under another name, with other line breaks.
    let same = "\nfn bounded(v: f32) -> f32 {\n    let x = clamp(v, -10.0, 10.0); // as there\n    return tanh(x);\n}\n";
    let finding = "`bounded` has the body of a function at crates/kernels/src/product/matmul.wgsl:2";
    check(shaders::functions_stand_once, twice(same), &[("crates/kernels/src/product/matmul_direct.wgsl:2", finding)]);
    check(shaders::functions_stand_once, twice("fn safe_tanh(v: f32) -> f32 {\n    let x = v;\n    return tanh(x);\n}\n"), &[]);
    // A single statement may be repeated.
    let load = "fn load(i: u32) -> f32 { return x[i]; }\n";
    let loads = |workspace: &mut Workspace| {
        with(first, load)(workspace);
        with(second, load)(workspace);
    };
    check(shaders::functions_stand_once, loads, &[]);
}

#[test]
fn files_stay_short() {
    check(source::files_are_short, with("tests/src/lib.rs", "fn f() {}\n".repeat(701)), &[("tests/src/lib.rs", "has 701 lines")]);
    check(source::files_are_short, with("tests/src/lib.rs", "fn f() {}\n".repeat(700)), &[]);
}

#[test]
fn comments_are_as_wide_as_code() {
    let (path, rule) = ("tests/src/lib.rs", source::comments_are_wrapped);
    // Characters count, not bytes, and indentation does.
    let wide = format!("fn f() {{\n    /// {}\n    //! {}\n}}\n", "é".repeat(122), "é".repeat(123));
    check(rule, with(path, wide.clone()), &[("tests/src/lib.rs:3", "131 characters, more than 130")]);
    // rustfmt's default where none is set.
    let unset = |workspace: &mut Workspace| {
        with(path, wide.clone())(workspace);
        without("rustfmt.toml")(workspace);
    };
    check(rule, unset, &[("tests/src/lib.rs:2", "more than 100"), ("tests/src/lib.rs:3", "more than 100")]);
    let others = format!("/// | {0} |\nlet x = 1; // {0}\n", "a ".repeat(70));
    check(rule, with(path, others), &[]);
}

#[test]
fn nothing_is_left_over() {
    let text = "fn f() {
    todo!()
}
#[test]
#[ignore = \"slow\"]
fn g() {
    dbg!(1); // dbg!
    let _ = \"todo!()\";
    my_todo!();
}
fn h() { unimplemented!(\"later\") }";
    let path = "crates/table/src/rows.rs";
    let at = |line: usize| format!("{path}:{line}");
    let expected = [(at(2), "`todo!`"), (at(5), "`#[ignore`"), (at(7), "`dbg!`"), (at(11), "`unimplemented!`")];
    check(source::nothing_is_left_over, with(path, text), &expected.each_ref().map(|(place, part)| (place.as_str(), *part)));
}

#[test]
fn only_programs_print() {
    let text = "/// println!(\"in the docs\")\nfn f() {\n    eprintln!(\"from a library\");\n}\n";
    check(
        source::libraries_do_not_print,
        with("crates/table/src/rows.rs", text),
        &[("crates/table/src/rows.rs:3", "`eprintln!` in a library")],
    );
    for program in [
        "crates/table/benches/rows.rs",
        "crates/table/tests/it/main.rs",
        "examples/higgs/main.rs",
        "crates/table/src/rows/tests.rs",
    ] {
        check(source::libraries_do_not_print, with(program, text), &[]);
    }
}

#[test]
fn unsafe_code_is_listed() {
    let library = "#![doc = include_str!(\"../README.md\")]\n";
    let rule = source::unsafe_is_listed;
    check(rule, with("crates/table/src/lib.rs", library), &[("crates/table/src/lib.rs", "#![forbid(unsafe_code)]")]);
    let one = |workspace: &mut Workspace| {
        with("crates/table/src/lib.rs", library)(workspace);
        with("crates/table/src/map.rs", "fn f(p: *const u8) -> u8 { unsafe { *p } }")(workspace);
        // The name of the lint and a comment are not unsafe code.
        with("crates/table/src/safe.rs", "#![deny(unsafe_code)] // unsafe\n")(workspace);
    };
    check(rule, one, &[("crates/table/src/map.rs", "say in ARCHITECTURE.md")]);
    let list = |names: [&str; 2]| {
        let rows = names.map(|name| format!("| `{name}` | reads `memory` | it is sound |\n")).concat();
        format!("# Architecture\n\n## Unsafe code\n\n| file | what |\n| --- | --- |\n{rows}\n## More\n\n| `a.rs` |\n")
    };
    let listing = |names| {
        let text = list(names);
        move |workspace: &mut Workspace| {
            one(workspace);
            with("ARCHITECTURE.md", text.clone())(workspace);
        }
    };
    check(rule, listing(["table/src/map.rs"; 2]), &[]);
    let gone = listing(["table/src/map.rs", "table/src/safe.rs"]);
    check(rule, gone, &[("ARCHITECTURE.md", "crates/table/src/safe.rs under Unsafe code, which has no `unsafe`")]);
}

#[test]
fn no_folder_of_one_machine_is_named() {
    let text = concat!("let data = \"..", "/shared/data\";\n");
    check(source::no_machine_is_named, with("tests/src/lib.rs", text), &[("tests/src/lib.rs:1", "use BRISK_DATA")]);
    check(source::no_machine_is_named, with(".ci/run", text), &[]);
}

#[test]
fn crates_stay_light() {
    let packages = |n: usize| (0..n).map(|n| format!("crate-{n:03} v1.0.0")).collect();
    let heavy = |workspace: &mut Workspace| workspace.trees[0] = packages(27);
    check(weight::stays_low, heavy, &[("brisk-table", "takes 27 packages to build, expected at most 26: crate-000")]);
    let heavy = |workspace: &mut Workspace| workspace.trees[1] = packages(131);
    check(
        weight::stays_low,
        heavy,
        &[("brisk-table", "takes 131 packages to build with the feature `http`, expected at most 130")],
    );
    let light = |workspace: &mut Workspace| (workspace.trees[0], workspace.trees[1]) = (packages(26), packages(130));
    check(weight::stays_low, light, &[]);
}

#[test]
fn a_tree_counts_each_package_once_and_each_version() {
    let printed = "brisk-table v0.1.0 (/home/brisk/crates/table)
memmap2 v0.9.9
libc v0.2.1
libc v0.2.1 (*)

syn v2.0.1
syn v1.0.9
serde_derive v1.0.1 (proc-macro)";
    assert_eq!(weight::unique_packages(printed).len(), 6);
}

#[track_caller]
fn check_code(text: &str, expected: &[(usize, &str)]) {
    let found = code_lines(text);
    let found: Vec<(usize, &str)> = found.iter().map(|(line, code)| (*line, code.trim())).collect();
    assert_eq!(found, expected, "{text}");
}

#[test]
fn comments_and_literals_are_not_code() {
    check_code("a // b\n/* c\n d */ e\n", &[(1, "a"), (3, "e")]);
    check_code("/* a /* b */ c */ d", &[(1, "d")]);
    check_code("f(\"// no comment \\\" still\"); g", &[(1, "f(\"); g")]);
    check_code("f(r#\"raw \" todo!\n\"#); g", &[(1, "f(\""), (2, "); g")]);
    check_code("f(b'\\'', '\"', br\"x\"); g::<'a>()", &[(1, "f(b\", \", b\"); g::<'a>()")]);
    check_code("for r in var\"x\"", &[(1, "for r in var\"")]);
}

#[test]
fn imports_name_the_module_that_owns_a_thing() {
    let crate_of = |text: &'static str| {
        move |workspace: &mut Workspace| {
            workspace.packages.push(Package {
                name: "brisk-report".into(),
                folder: "crates/report".into(),
                ..Package::default()
            });
            with("crates/report/src/lib.rs", "pub mod page;\nmod error;\npub use error::Error;\n")(workspace);
            with("crates/report/src/page.rs", text)(workspace);
        }
    };
    let rule: Rule = |workspace| {
        // The sound workspace has two crates of the list, whose files import nothing.
        let mut findings = rooms::imports_name_their_module(workspace);
        findings.retain(|finding| finding.path.starts_with("crates/report/"));
        findings
    };
    check(
        rule,
        crate_of("use crate::error::Error;\nuse crate::{error::Error, page::{self, Page}};\n// crate::Error\ncrate::m!()"),
        &[],
    );
    let text = "//! Page.\n\nuse std::fmt;\nuse crate::{\n    Error, page,\n};\nfn f() -> Result<(), crate::Error> {}\nmacro!($crate::X);";
    let expected = "`crate::Error` is a re-export for other crates; name its module";
    check(rule, crate_of(text), &[("crates/report/src/page.rs:4", expected), ("crates/report/src/page.rs:7", expected)]);
}

/// Adds a crate `report` with these files, of which it declares the modules `chart`, `panel` and `report`.
fn report_with<const N: usize>(files: [(&'static str, &'static str); N]) -> impl Fn(&mut Workspace) {
    move |workspace| {
        workspace.packages.push(Package { name: "brisk-report".into(), folder: "crates/report".into(), ..Package::default() });
        with("crates/report/src/lib.rs", "mod chart;\nmod panel;\nmod report;\npub use report::Report;\n")(workspace);
        for (path, text) in files {
            with(path, text)(workspace);
        }
    }
}

#[test]
fn modules_form_no_circle() {
    let rule: Rule = circles::modules_form_none;
    let [chart, panel, report] = ["crates/report/src/chart/bars.rs", "crates/report/src/panel.rs", "crates/report/src/report.rs"];
    // Tests may import from all, and a module may import from itself.
    let tests = "crates/report/src/chart/tests.rs";
    let downwards = [
        (report, "use crate::panel::Panel;\nuse crate::chart::bars;\nuse crate::report::title;"),
        (panel, "use crate::{chart};\n// crate::report\n"),
        (tests, "use crate::report::Report;\n"),
    ];
    check(rule, report_with(downwards), &[]);
    let root = "crates/report/src/lib.rs";
    let both = [(report, "use crate::panel::Panel;"), (panel, "\nuse crate::{error, report::Report};"), (tests, "")];
    let circle =
        "panel imports from report (crates/report/src/panel.rs:2), report imports from panel (crates/report/src/report.rs:1)";
    check(rule, report_with(both), &[(root, circle)]);
    // An arrow may be hidden in a path that leads to the root by `super`.
    let hidden = [(chart, "use super::super::report::Report;"), (panel, ""), (report, "use super::chart::bars;")];
    check(rule, report_with(hidden), &[(root, "chart imports from report (crates/report/src/chart/bars.rs:1)")]);
}

#[test]
fn files_form_no_circle() {
    let rule: Rule = circles::files_form_none;
    let [chart, bars] = ["crates/report/src/chart.rs", "crates/report/src/chart/bars.rs"];
    let [axis, tests] = ["crates/report/src/chart/axis.rs", "crates/report/src/chart/axis/tests.rs"];
    let root = "crates/report/src/lib.rs";
    // Declarations of modules and re-exports are no imports, and tests may import from all.
    let declared = "mod axis;\nmod bars;\npub(crate) use self::axis::Axis;\npub use bars::{Bar, Bars as AllBars};\n";
    let downwards = [
        (chart, declared),
        (bars, "use super::Axis;\nuse std::fmt;\nuse other::axis::Tick;\n// super::chart\nfn f() { fmt::write() }"),
        (axis, "#[cfg(test)]\nmod tests;\nfn f(bars: usize) { bars.len::<Bars>() }"),
        (tests, "use super::super::bars::Bar;"),
    ];
    check(rule, report_with(downwards), &[]);
    // In whatever way `axis` imports from `bars`, which imports `Axis` by a re-export.
    for (text, item, line) in [
        ("use std::fmt;\nuse super::bars::Bar;", "Bar", 2),
        ("use crate::chart::{\n    bars::{Bar as B},\n};", "Bar", 1),
        ("use super::AllBars;", "Bars", 1),
        ("fn f() {}\n\nimpl super::bars::Bar {}", "Bar", 3),
        ("use super::bars;\nfn f() { bars::draw(1) }", "draw", 2),
        ("use super::bars::{self, *};", "*", 1),
        ("use super::bars as drawn;\nfn f() {\n    g(drawn::draw);\n}", "draw", 3),
    ] {
        let both = [(chart, declared), (bars, "use super::Axis;"), (axis, text)];
        let circle = format!(
            "files form a circle: {axis} imports from {bars} (`{item}`, line {line}), {bars} imports from {axis} (`Axis`, line 1)"
        );
        check(rule, report_with(both), &[(root, &circle)]);
    }
    // A glob re-exports what the file defines.
    let glob = [
        (chart, "mod axis;\nmod bars;\nuse bars::Bar;\npub use axis::*;"),
        (bars, "use super::Axis;"),
        (axis, "pub struct Axis;"),
    ];
    check(rule, report_with(glob), &[]);
    let unknown = [glob[0], (bars, "use super::Axes;"), glob[2]];
    let circle = format!("{chart} imports from {bars} (`Bar`, line 3), {bars} imports from {chart} (`Axes`, line 1)");
    check(rule, report_with(unknown), &[(root, &circle)]);
}

#[test]
fn bodies_of_a_kernel_may_import_it() {
    let rule: Rule = circles::files_form_none;
    let (kernel, twin) = ("crates/kernels/src/product/matmul.rs", "crates/kernels/src/product/matmul_batch_cpu.rs");
    let other = "crates/kernels/src/product/scan.rs";
    let with_all = |files: [(&'static str, &'static str); 3]| {
        move |workspace: &mut Workspace| files.iter().for_each(|&(path, text)| with(path, text)(workspace))
    };
    let body = "use crate::product::matmul::Matmul;";
    check(
        rule,
        with_all([(kernel, "use super::matmul_batch_cpu;\nfn f() { matmul_batch_cpu::run() }"), (twin, body), (other, "")]),
        &[],
    );
    let circle = "matmul.rs imports from crates/kernels/src/product/scan.rs (`scan`, line 1)";
    check(
        rule,
        with_all([(kernel, "use super::scan::scan;"), (twin, ""), (other, body)]),
        &[("crates/kernels/src/lib.rs", circle)],
    );
}

#[test]
fn known_circles_are_needed() {
    let of_tensor = |node: &'static str| {
        move |workspace: &mut Workspace| {
            workspace.packages.push(Package {
                name: "brisk-tensor".into(),
                folder: "crates/tensor".into(),
                ..Package::default()
            });
            with("crates/tensor/src/graph/node.rs", node)(workspace);
            with("crates/tensor/src/graph/operation.rs", "use super::node::Node;")(workspace);
        }
    };
    check(circles::files_form_none, of_tensor("use super::operation::Operation;"), &[]);
    let expected = "imports nothing from crates/tensor/src/graph/operation.rs; take it off the list";
    check(circles::files_form_none, of_tensor(""), &[("crates/tensor/src/graph/node.rs", expected)]);
}
