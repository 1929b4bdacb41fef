//! Constants and structure layouts of C headers for Rust code, as the C compiler computes them.
//!
//! The C compiler translates a generated file to assembly. Each wanted constant stands there as a
//! line of text, so nothing has to be run, and cross-compiling works. Linux computes its structure
//! offsets for assembly code in the same way.

use std::fmt::Write;
use std::process::Command;

use crate::generate;

/// Begins each line of the assembly that holds a constant.
const MARK: &str = "->";

/// Constants and structures of C that a crate repeats in Rust.
///
/// Structures are asserted, constants are generated: neither can differ from the headers without
/// failing the build.
#[derive(Debug)]
pub struct Mirror {
    source: String,
    constants: Vec<&'static str>,
    structures: Vec<Structure>,
}

#[derive(Debug)]
struct Structure {
    rust: &'static str,
    /// The fields whose layout the C compiler computes, in the order of [`Structure::assertions`].
    fields: Vec<Field>,
}

#[derive(Debug)]
struct Field {
    c: &'static str,
    rust: &'static str,
}

impl Mirror {
    /// An empty mirror of these headers. The other methods add constants and structures.
    pub fn of(headers: &[&str]) -> Self {
        let mut source = String::from("#include <stddef.h>\n");
        for header in headers {
            let _ = writeln!(source, "#include <{header}>");
        }
        source += "#define LW_EMIT(value) \\\n\
                   \t__asm__ volatile(\"\\n.ascii \\\"-> %c0\\\"\\n\" : : \"i\" ((long long)(value)))\n\
                   void lw_emit(void);\n\
                   void lw_emit(void)\n{\n";
        Self {
            source,
            constants: Vec::new(),
            structures: Vec::new(),
        }
    }

    /// Generates a `const NAME: usize` for each of these C constants: macros, enumerators, or other
    /// integer constant expressions that are identifiers. None of them is negative.
    #[must_use]
    pub fn constants(mut self, names: &[&'static str]) -> Self {
        assert!(
            self.structures.is_empty(),
            "constants come before structures"
        );
        for name in names {
            let _ = writeln!(self.source, "\tLW_EMIT({name});");
        }
        self.constants.extend(names);
        self
    }

    /// Asserts that the Rust structure `rust` is laid out as the C type `c`: size and alignment of
    /// the whole, offset and size of each field. A field that Rust calls differently is written
    /// `"trylock as try_lock"`.
    #[must_use]
    pub fn structure(mut self, rust: &'static str, c: &str, fields: &[&'static str]) -> Self {
        let fields: Vec<Field> = fields
            .iter()
            .map(|field| match field.split_once(" as ") {
                Some((c, rust)) => Field { c, rust },
                None => Field {
                    c: field,
                    rust: field,
                },
            })
            .collect();
        let _ = writeln!(
            self.source,
            "\tLW_EMIT(sizeof({c}));\n\tLW_EMIT(_Alignof({c}));"
        );
        for Field { c: field, .. } in &fields {
            let _ = writeln!(
                self.source,
                "\tLW_EMIT(offsetof({c}, {field}));\n\tLW_EMIT(sizeof((({c} *)0)->{field}));"
            );
        }
        self.structures.push(Structure { rust, fields });
        self
    }

    /// Writes the constants to `constants.rs` in `OUT_DIR`, and the assertions about the structure
    /// `NAME` to `layout_NAME.rs`. The crate includes each where the names are in scope.
    ///
    /// # Panics
    ///
    /// If the C compiler fails, or a constant is negative.
    pub fn write(mut self, compiler: &cc::Build) {
        self.source += "}\n";
        let mut values = emitted(&self.source, compiler).into_iter();
        let mut next = || values.next().expect("a value for each that was asked for");
        let mut constants = String::new();
        for name in &self.constants {
            let value = next();
            let _ = writeln!(constants, "#[doc = \"`{name}` of the C headers.\"]");
            let _ = writeln!(constants, "pub(crate) const {name}: usize = {value};");
        }
        generate("constants.rs", &constants);
        for structure in &self.structures {
            let file = format!("layout_{}.rs", structure.rust);
            generate(&file, &structure.assertions(&mut next));
        }
        assert!(values.next().is_none(), "a value that was not asked for");
    }
}

impl Structure {
    fn assertions(&self, mut next: impl FnMut() -> u64) -> String {
        let rust = self.rust;
        let mut text = String::from(
            "const _: () = {\n    \
             const fn size_of_field<S, F>(_: fn(&S) -> &F) -> usize {\n        \
             ::core::mem::size_of::<F>()\n    }\n",
        );
        let mut claim = |expression: String, value: u64| {
            let _ = writeln!(
                text,
                "    assert!({expression} == {value}, \"C has another {expression}\");"
            );
        };
        claim(format!("::core::mem::size_of::<{rust}>()"), next());
        claim(format!("::core::mem::align_of::<{rust}>()"), next());
        for Field { rust: field, .. } in &self.fields {
            claim(format!("::core::mem::offset_of!({rust}, {field})"), next());
            claim(
                format!("size_of_field(|structure: &{rust}| &structure.{field})"),
                next(),
            );
        }
        text += "};\n";
        text
    }
}

/// The constants that `source` emits, in its order.
fn emitted(source: &str, compiler: &cc::Build) -> Vec<u64> {
    let from = generate("mirror.c", source);
    let to = from.with_extension("s");
    let mut command: Command = compiler.get_compiler().to_command();
    command
        .args(["-O1", "-fno-lto", "-S", "-o"])
        .arg(&to)
        .arg(&from);
    let status = command
        .status()
        .unwrap_or_else(|error| panic!("{command:?}: {error}"));
    assert!(status.success(), "{command:?}: {status}");
    let assembly =
        std::fs::read_to_string(&to).unwrap_or_else(|error| panic!("{}: {error}", to.display()));
    assembly
        .lines()
        .filter_map(|line| line.split_once(MARK)?.1.trim().strip_suffix('"'))
        .map(|value| {
            value
                .parse()
                .unwrap_or_else(|error| panic!("{value}: {error}; a constant must not be negative"))
        })
        .collect()
}
