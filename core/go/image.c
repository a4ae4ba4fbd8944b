/* SPDX-License-Identifier: MIT */
#include "core/go/image.h"

#define GO_NOTE 4	/* the type of the note with the linker's build id */
#define NOTES_MAX 4096

#if defined(__x86_64__)
#define MACHINE EM_X86_64
#elif defined(__aarch64__)
#define MACHINE EM_AARCH64
#else
#define MACHINE EM_NONE
#endif

static const char build_info[] = "\xff Go buildinf:";

static uint64_t rounded(uint32_t bytes)
{
	return ((uint64_t)bytes + 3) & ~3ULL;
}

/* Goes through the notes of one segment. */
static bool has_go_note(const uint8_t *notes, uint64_t size)
{
	uint64_t at = 0, next;

	if (size > NOTES_MAX)
		size = NOTES_MAX;
	while (size - at >= 12) {
		const uint8_t *note = notes + at;

		next = at + 12 + rounded(shunt_go_u32(note)) + rounded(shunt_go_u32(note + 4));
		if (next > size)
			return false;
		if (shunt_go_u32(note + 8) == GO_NOTE && shunt_go_u32(note) == 4 &&
		    !memcmp(note + 12, "Go\0", 4))
			return true;
		at = next;
	}
	return false;
}

/* Go's own linker begins the data with it. A build id can be left out (-buildid=), and this cannot. */
static bool has_build_info(const uint8_t *data, uint64_t size)
{
	return size >= sizeof(build_info) - 1 && !memcmp(data, build_info, sizeof(build_info) - 1);
}

bool shunt_go_image_is_go(const Elf64_Phdr *headers, unsigned int count, uintptr_t base)
{
	for (unsigned int i = 0; i < count; i++) {
		const Elf64_Phdr *header = &headers[i];
		const uint8_t *bytes = (const uint8_t *)(base + header->p_vaddr);

		if (header->p_type == PT_NOTE && header->p_flags & PF_R &&
		    has_go_note(bytes, header->p_filesz))
			return true;
		if (header->p_type == PT_LOAD && header->p_flags & PF_W &&
		    has_build_info(bytes, header->p_filesz))
			return true;
	}
	return false;
}

static void add(struct shunt_go_image *image, const Elf64_Phdr *header, uint64_t address,
		const uint8_t *bytes, uint64_t size)
{
	uint64_t end;

	if (image->count == SHUNT_GO_SEGMENTS ||
	    __builtin_add_overflow(address, header->p_memsz, &end) || size > header->p_memsz)
		return;
	image->segments[image->count++] = (struct shunt_go_segment) { address, size, bytes,
								      header->p_flags };
	if (!image->low || address < image->low)
		image->low = address;
	if (end > image->high)
		image->high = end;
}

void shunt_go_image_of_memory(struct shunt_go_image *image, const Elf64_Phdr *headers,
			      unsigned int count, uintptr_t base)
{
	*image = (struct shunt_go_image) { .count = 0 };
	for (unsigned int i = 0; i < count; i++) {
		uintptr_t address = base + headers[i].p_vaddr;

		if (headers[i].p_type == PT_LOAD && headers[i].p_flags & PF_R)
			add(image, &headers[i], address, (const uint8_t *)address,
			    headers[i].p_filesz);
	}
}

static bool inside(uint64_t at, uint64_t bytes, uint64_t size)
{
	return at <= size && bytes <= size - at;
}

static bool file_header(const uint8_t *file, uint64_t size, Elf64_Ehdr *elf)
{
	if (size < sizeof(*elf))
		return false;
	memcpy(elf, file, sizeof(*elf));
	return !memcmp(elf->e_ident, ELFMAG, SELFMAG) && elf->e_ident[EI_CLASS] == ELFCLASS64 &&
	       elf->e_machine == MACHINE;
}

/* The files of programs that lie about their size end where the mapping ends. */
static void segment_of_file(struct shunt_go_image *image, const uint8_t *file, uint64_t size,
			    const Elf64_Phdr *header, bool *is_go)
{
	const uint8_t *bytes;

	if (!inside(header->p_offset, header->p_filesz, size))
		return;
	bytes = file + header->p_offset;
	if (header->p_type == PT_NOTE && has_go_note(bytes, header->p_filesz))
		*is_go = true;
	if (header->p_type != PT_LOAD)
		return;
	if (header->p_flags & PF_W && has_build_info(bytes, header->p_filesz))
		*is_go = true;
	if (header->p_flags & PF_R)
		add(image, header, header->p_vaddr, bytes, header->p_filesz);
}

bool shunt_go_image_of_file(struct shunt_go_image *image, const uint8_t *file, uint64_t size,
			    bool *is_go)
{
	Elf64_Ehdr elf;
	Elf64_Phdr header;

	*image = (struct shunt_go_image) { .count = 0 };
	*is_go = false;
	if (!file_header(file, size, &elf) || elf.e_phentsize != sizeof(header) ||
	    !inside(elf.e_phoff, (uint64_t)elf.e_phnum * sizeof(header), size))
		return false;
	for (unsigned int i = 0; i < elf.e_phnum; i++) {
		memcpy(&header, file + elf.e_phoff + i * sizeof(header), sizeof(header));
		segment_of_file(image, file, size, &header, is_go);
	}
	return true;
}

static bool named(const uint8_t *names, uint64_t size, uint64_t at, const char *name)
{
	size_t bytes = strlen(name) + 1;

	return inside(at, bytes, size) && !memcmp(names + at, name, bytes);
}

uint64_t shunt_go_image_section(const uint8_t *file, uint64_t size, const char *name)
{
	Elf64_Ehdr elf;
	Elf64_Shdr section, names;

	if (!file_header(file, size, &elf) || elf.e_shentsize != sizeof(section) ||
	    elf.e_shstrndx >= elf.e_shnum ||
	    !inside(elf.e_shoff, (uint64_t)elf.e_shnum * sizeof(section), size))
		return 0;
	memcpy(&names, file + elf.e_shoff + elf.e_shstrndx * sizeof(names), sizeof(names));
	if (!inside(names.sh_offset, names.sh_size, size))
		return 0;
	for (unsigned int i = 0; i < elf.e_shnum; i++) {
		memcpy(&section, file + elf.e_shoff + i * sizeof(section), sizeof(section));
		if (named(file + names.sh_offset, names.sh_size, section.sh_name, name))
			return section.sh_addr;
	}
	return 0;
}

const struct shunt_go_segment *shunt_go_image_segment(const struct shunt_go_image *image,
						      uint64_t address)
{
	for (unsigned int i = 0; i < image->count; i++) {
		const struct shunt_go_segment *segment = &image->segments[i];

		if (address >= segment->address && address - segment->address < segment->size)
			return segment;
	}
	return NULL;
}

const uint8_t *shunt_go_image_at(const struct shunt_go_image *image, uint64_t address,
				 uint64_t size)
{
	const struct shunt_go_segment *segment = shunt_go_image_segment(image, address);

	if (!segment || !inside(address - segment->address, size, segment->size))
		return NULL;
	return segment->bytes + (address - segment->address);
}
