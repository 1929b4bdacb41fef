//! Kernel configurations: the options that are requested, and a check that the kernel's rules allow them.

use std::collections::HashMap;
use std::fmt::Display;
use std::fs;
use std::path::Path;

use include_dir::{Dir, include_dir};
use walkdir::WalkDir;

use crate::arch::Arch;
use crate::error::{Error, Result};
use crate::variant::Variant;
use crate::version::Version;

/// Configurations and scripts of the guests.
pub(crate) static GUEST: Dir = include_dir!("$CARGO_MANIFEST_DIR/guest");

/// All requested options, in the kernel's own format.
pub(crate) fn requested(
    arch: Arch,
    version: Version,
    variant: Variant,
    statistics: bool,
) -> String {
    let of_arch = [
        arch.to_string(),
        format!("{arch}-{}", version.major()),
        format!("{arch}-{version}"),
        variant.to_string(),
        format!("{arch}-{variant}"),
    ];
    common(version, statistics) + &options(of_arch)
}

/// The requested options that all architectures and configurations have.
pub(crate) fn common(version: Version, statistics: bool) -> String {
    let statistics = statistics.then_some("statistics");
    let names = ["base", version.major(), version.name()];
    options(names.into_iter().chain(statistics))
}

/// The options in files of [`GUEST`], as far as there are such files.
fn options(names: impl IntoIterator<Item: Display>) -> String {
    let names = names.into_iter();
    names
        .filter_map(|name| GUEST.get_file(format!("{name}.config"))?.contents_utf8())
        .collect()
}

/// Checks that each requested option has its value in the configuration that the kernel made in `tree`.
pub(crate) fn check(requested: &str, config: &str, tree: &Path) -> Result<()> {
    let got: HashMap<&str, &str> = settings(config).collect();
    let refusals: Vec<String> = settings(requested)
        .map(|(name, wanted)| (name, wanted, got.get(name).copied().unwrap_or("n")))
        .filter(|(_, wanted, got)| got != wanted)
        .map(|(name, wanted, got)| format!("{name}={wanted} became {got} ({})", rule(tree, name)))
        .collect();
    if refusals.is_empty() {
        return Ok(());
    }
    Err(Error::Refused(format!(
        "the Kconfig rules of the tree do not allow the configuration of the guests: {}; change these rules, \
         or give another --config or --tree",
        refusals.join("; ")
    )))
}

/// The place in a tree where Kconfig defines an option, and what the option depends on there.
fn rule(tree: &Path, name: &str) -> String {
    let symbol = name.trim_start_matches("CONFIG_");
    let defines = |line: &str| {
        let mut words = line.split_whitespace();
        matches!(words.next(), Some("config" | "menuconfig")) && words.next() == Some(symbol)
    };
    let files = WalkDir::new(tree).into_iter().filter_map(|entry| {
        let path = entry.ok()?.into_path();
        let is_kconfig = path.file_name()?.to_str()?.starts_with("Kconfig");
        is_kconfig.then_some(path)
    });
    let found = files.filter_map(|path| Some((fs::read_to_string(&path).ok()?, path)));
    let rules = found.filter_map(|(text, path)| {
        let line = text.lines().position(defines)?;
        let properties = text.lines().skip(line + 1);
        let properties =
            properties.take_while(|line| line.is_empty() || line.starts_with([' ', '\t']));
        let properties = properties
            .collect::<Vec<_>>()
            .join("\n")
            .replace("\\\n", " ");
        let needs: Vec<String> = properties
            .lines()
            .filter_map(|line| line.trim().strip_prefix("depends on "))
            .map(|needs| needs.split_whitespace().collect::<Vec<_>>().join(" "))
            .collect();
        let path = path.strip_prefix(tree).unwrap_or(&path).display();
        Some(match needs.is_empty() {
            true => format!("{path}:{} has its rules", line + 1),
            false => format!("{path}:{}: it depends on {}", line + 1, needs.join(" && ")),
        })
    });
    let rules: Vec<String> = rules.collect();
    match rules.is_empty() {
        true => "this tree has no such option".to_owned(),
        false => rules.join(", "),
    }
}

pub(crate) fn settings(config: &str) -> impl Iterator<Item = (&str, &str)> {
    config
        .lines()
        .filter(|line| line.starts_with("CONFIG_"))
        .filter_map(|line| line.split_once('='))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_symbol_is_looked_at() {
        let requested = "# why\nCONFIG_A=y\nCONFIG_B=n\nCONFIG_C=256\nCONFIG_D=m\n";
        let good = "CONFIG_A=y\n# CONFIG_B is not set\nCONFIG_C=256\nCONFIG_D=m\nCONFIG_E=y\n";
        let tree = tempfile::tempdir().unwrap();
        check(requested, good, tree.path()).unwrap();
        let absent = good.replace("# CONFIG_B is not set\n", "");
        check(requested, &absent, tree.path()).unwrap();

        let bad = "CONFIG_A=y\nCONFIG_B=y\nCONFIG_D=y\n";
        let said = check(requested, bad, tree.path()).unwrap_err().to_string();
        for part in [
            "CONFIG_B=n became y (this tree has no such option); ",
            "CONFIG_C=256 became n",
            "CONFIG_D=m became y",
        ] {
            assert!(said.contains(part), "{said}");
        }
    }

    #[test]
    fn the_rule_of_a_refused_option_is_named() {
        let tree = tempfile::tempdir().unwrap();
        fs::create_dir(tree.path().join("kernel")).unwrap();
        fs::write(
            tree.path().join("kernel/Kconfig.locks"),
            "config NUMA_AWARE\n\tbool \"x\"\n\n\tdepends on NUMA && \\\n\t\t!OTHER\n\thelp\n\t  A\n\
             config NUMA_AWARE_HQ\n\tbool \"x\"\n\tdepends on NUMA_AWARE\n",
        )
        .unwrap();
        let requested = "CONFIG_NUMA_AWARE_HQ=y\nCONFIG_NUMA_AWARE=y\n";
        let got = "CONFIG_NUMA=y\nCONFIG_OTHER=y\n";
        let said = check(requested, got, tree.path()).unwrap_err().to_string();
        assert_eq!(
            said,
            "the Kconfig rules of the tree do not allow the configuration of the guests: \
             CONFIG_NUMA_AWARE_HQ=y became n (kernel/Kconfig.locks:8: it depends on NUMA_AWARE); \
             CONFIG_NUMA_AWARE=y became n (kernel/Kconfig.locks:1: it depends on NUMA && !OTHER); \
             change these rules, or give another --config or --tree"
        );
    }

    fn all() -> impl Iterator<Item = (Arch, Version, Variant)> {
        Arch::ALL.into_iter().flat_map(|arch| {
            Version::ALL.into_iter().flat_map(move |version| {
                let variants = arch.variants().iter();
                variants.map(move |variant| (arch, version, *variant))
            })
        })
    }

    #[test]
    fn variants_differ_where_they_should() {
        for (arch, version, variant) in all() {
            let requested = requested(arch, version, variant, true);
            let has = |line| requested.lines().any(|l| l == line);
            assert!(has("CONFIG_LOCK_TORTURE_TEST=m"));
            assert!(has("CONFIG_NUMA_AWARE_SPINLOCKS=y"));
            assert_eq!(has("CONFIG_HYPERVISOR_GUEST=y"), arch == Arch::X86_64);
            assert_eq!(has("CONFIG_SERIAL_AMBA_PL011=y"), arch == Arch::Arm64);
            let pv = has("CONFIG_PARAVIRT_SPINLOCKS=y");
            assert_eq!(pv, variant == Variant::Paravirt);
            let debug = has("CONFIG_PROVE_LOCKING=y");
            assert_eq!(debug, variant == Variant::Debug);
        }
    }

    #[test]
    fn nothing_is_asked_for_twice() {
        for (arch, version, variant) in all() {
            let all = requested(arch, version, variant, true);
            let symbols: Vec<&str> = settings(&all).map(|(symbol, _)| symbol).collect();
            let distinct: std::collections::HashSet<_> = symbols.iter().collect();
            assert_eq!(distinct.len(), symbols.len());
        }
    }
}
