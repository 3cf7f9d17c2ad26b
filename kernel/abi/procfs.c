// SPDX-License-Identifier: GPL-2.0
#include <linux/cgroup.h>
#include <linux/proc_fs.h>
#include <linux/seq_file.h>
#include <linux/slab.h>

#include "kernel/abi/abi.h"
#include "kernel/abi/procfs.h"
#include "kernel/compat/memory_tiers.h"
#include "kernel/compat/symbols.h"
#include "kernel/copy/assist.h"
#include "kernel/copy/engines.h"
#include "kernel/migrate/destinations.h"
#include "kernel/migrate/requests.h"
#include "kernel/migrate/statistics.h"
#include "kernel/tenant/tenant.h"

/* /proc/memsluice: tables for people, docs/abi/procfs-memsluice. Programs use the ioctls. */

static struct proc_dir_entry *directory;

static int status_show(struct seq_file *file, void *unused)
{
	const struct memsluice_symbol *symbols;
	unsigned int count, i;
	int nid;

	seq_printf(file, "release %s\n", MEMSLUICE_RELEASE);
	seq_printf(file, "abi_version %d\n", MEMSLUICE_ABI_VERSION);
	seq_printf(file, "features 0x%llx\n", memsluice_features);
	for_each_node_state(nid, N_MEMORY) {
		struct memsluice_node_memory memory = memsluice_node_memory(nid);

		seq_printf(file, "node %d %s managed_pages %lu free_pages %lu\n", nid,
			   memsluice_node_is_fast(nid) ? "fast" : "slow", memory.managed_pages,
			   memory.free_pages);
	}
	symbols = memsluice_symbol_table(&count);
	for (i = 0; i < count; i++)
		seq_printf(file, "symbol %s %s\n", symbols[i].name,
			   memsluice_symbol_state_name(symbols[i].state));
	return 0;
}

void memsluice_show_path(struct seq_file *file, u64 cgroup_id)
{
	struct cgroup *cgroup = cgroup_get_from_id(cgroup_id);
	char *path = NULL;

	if (!IS_ERR(cgroup)) {
		path = kmalloc(PATH_MAX, GFP_KERNEL);
		if (path && cgroup_path(cgroup, path, PATH_MAX) < 0)
			*path = '\0';
		cgroup_put(cgroup);
	}
	/* Paths may hold anything but a slash: what would break a line is escaped. */
	seq_escape(file, path && *path ? path : "?", " \t\n\\");
	kfree(path);
}

/* Calls @show for every tenant, with a status that lives as long as the call. */
static int each_tenant(struct seq_file *file,
		       void (*show)(struct seq_file *file,
				    const struct memsluice_tenant_status *status))
{
	struct memsluice_tenant_status *status = kmalloc(sizeof(*status), GFP_KERNEL);
	struct memsluice_tenant *tenant;
	u64 id = 0;

	if (!status)
		return -ENOMEM;
	while ((tenant = memsluice_tenant_next(id))) {
		id = tenant->cgroup_id;
		memset(status, 0, sizeof(*status));
		memsluice_tenant_status(tenant, status);
		memsluice_tenant_put(tenant);
		show(file, status);
	}
	kfree(status);
	return 0;
}

static u64 sum_refused(const u64 *refused)
{
	u64 sum = 0;
	int i;

	for (i = 0; i < MEMSLUICE_REFUSALS; i++)
		sum += refused[i];
	return sum;
}

static void show_tenant(struct seq_file *file, const struct memsluice_tenant_status *status)
{
	seq_printf(file, "%llu ", status->cgroup_id);
	memsluice_show_path(file, status->cgroup_id);
	seq_printf(file, " %s ",
		   status->policy.flags & MEMSLUICE_POLICY_TIERING ? "tiering" : "off");
	if (status->policy.fast_limit_bytes == MEMSLUICE_NO_LIMIT)
		seq_puts(file, "none");
	else
		seq_printf(file, "%llu", status->policy.fast_limit_bytes);
	seq_printf(file, " %u %u %llu %llu %llu %llu %llu\n", status->policy.promote_mib_per_s,
		   status->policy.demote_mib_per_s, status->fast_bytes, status->slow_bytes,
		   status->promoted_pages, status->demoted_pages,
		   sum_refused(status->refused_pages));
}

static int tenants_show(struct seq_file *file, void *unused)
{
	seq_puts(
		file,
		"# cgroup_id path policy fast_limit_bytes promote_mib_per_s demote_mib_per_s fast_bytes slow_bytes promoted_pages demoted_pages refused_pages\n");
	return each_tenant(file, show_tenant);
}

static void show_histogram(struct seq_file *file, const char *tier, const u64 *pages)
{
	int bin;

	seq_printf(file, " %s", tier);
	for (bin = 0; bin < MEMSLUICE_BINS; bin++)
		seq_printf(file, " %llu", pages[bin]);
}

static void show_hotness(struct seq_file *file, const struct memsluice_tenant_status *status)
{
	seq_printf(
		file,
		"%llu scans %llu scanned_pages %llu scan_cpu_us %llu processes %u hot_bin %u cold_bin %u",
		status->cgroup_id, status->scans, status->scanned_pages, status->scan_cpu_us,
		status->processes, status->hot_bin, status->cold_bin);
	show_histogram(file, "fast", status->fast_histogram_pages);
	show_histogram(file, "slow", status->slow_histogram_pages);
	seq_putc(file, '\n');
}

static int hotness_show(struct seq_file *file, void *unused)
{
	return each_tenant(file, show_hotness);
}

static void show_request(struct memsluice_request *request, void *private)
{
	static const char *const kinds[] = { "range", "addresses", "tenant_node", "tenant_placed" };
	static const char *const states[] = { "running", "done", "cancelled", "failed" };
	const struct memsluice_request_spec *spec = &request->spec;
	struct memsluice_request_status status = {};
	struct seq_file *file = private;

	memsluice_request_status(request, &status);
	seq_printf(file, "%llu %s ", request->id, kinds[spec->kind]);
	if (spec->cgroup_id)
		seq_printf(file, "cgroup:%llu ", spec->cgroup_id);
	else
		seq_printf(file, "pid:%d ", spec->pid);
	seq_printf(file, "%d %s %d %llu %llu %llu %llu %llu\n", spec->target_node,
		   states[status.state], status.error, status.total_pages, status.seen_pages,
		   status.moved_pages, status.already_there_pages,
		   sum_refused(status.refused_pages));
}

static int requests_show(struct seq_file *file, void *unused)
{
	seq_puts(
		file,
		"# id kind object target_node state error total_pages seen_pages moved_pages already_there_pages refused_pages\n");
	memsluice_requests_each(show_request, file);
	return 0;
}

static void show_moved(struct seq_file *file, const struct memsluice_statistics *statistics)
{
	static const char *const whys[MEMSLUICE_WHYS] = { "request", "promotion", "demotion",
							  "placement" };
	static const char *const tiers[] = { "slow", "fast" };
	static const char *const sizes[MEMSLUICE_SIZES] = { "base", "large", "huge" };
	int why, fast, size;

	seq_puts(file, "# moved: why to size folios pages bytes\n");
	for (why = 0; why < MEMSLUICE_WHYS; why++) {
		for (fast = 0; fast < 2; fast++) {
			const struct memsluice_moved *moved = &statistics->moved[why][fast];

			for (size = 0; size < MEMSLUICE_SIZES; size++)
				seq_printf(file, "moved %s %s %s %llu %llu %llu\n", whys[why],
					   tiers[fast], sizes[size], moved->folios[size],
					   moved->pages[size], moved->pages[size] << PAGE_SHIFT);
		}
		seq_printf(file, "moved_by_kernel %s %llu\n", whys[why],
			   statistics->kernel_pages[why]);
	}
}

static void show_latencies(struct seq_file *file, const char *name,
			   const struct memsluice_latencies *latencies)
{
	int bin;

	seq_puts(file, name);
	for (bin = 0; bin < MEMSLUICE_LATENCY_BINS; bin++)
		seq_printf(file, " %llu", latencies->count[bin]);
	seq_putc(file, '\n');
}

static int migration_show(struct seq_file *file, void *unused)
{
	struct memsluice_statistics *statistics = kmalloc(sizeof(*statistics), GFP_KERNEL);
	int nid;

	if (!statistics)
		return -ENOMEM;
	memsluice_statistics_read(statistics);
	show_moved(file, statistics);
	seq_printf(file, "batches %llu\nlargest_batch_bytes %llu\ntlb_flushes %llu\n",
		   statistics->batches, statistics->largest_batch_bytes, statistics->flushes);
	seq_printf(file, "copied_bytes %llu\n", statistics->copied_bytes);
	seq_printf(file, "unmap_ns %llu\ncopy_ns %llu\nmap_ns %llu\n", statistics->unmap_ns,
		   statistics->copy_ns, statistics->map_ns);
	seq_printf(file, "fell_back_folios %llu\nuncopied_folios %llu\n",
		   statistics->fell_back_folios, statistics->uncopied_folios);
	memsluice_assist_show(file);
	show_latencies(file, "stall_us", &statistics->stall);
	show_latencies(file, "first_folio_us", &statistics->first);
	for_each_node_state(nid, N_MEMORY) {
		struct memsluice_pool_status pool = memsluice_pool_status(nid);

		seq_printf(file, "pool %d pages %lu hits %llu misses %llu reused %llu\n", nid,
			   pool.pages, pool.hits, pool.misses, pool.reused);
	}
	kfree(statistics);
	return 0;
}

static int engines_show(struct seq_file *file, void *unused)
{
	memsluice_copy_engines_show(file);
	return 0;
}

int memsluice_procfs_start(void)
{
	directory = proc_mkdir("memsluice", NULL);
	if (directory && proc_create_single("status", 0444, directory, status_show) &&
	    proc_create_single("tenants", 0444, directory, tenants_show) &&
	    proc_create_single("hotness", 0444, directory, hotness_show) &&
	    proc_create_single("requests", 0444, directory, requests_show) &&
	    proc_create_single("migration", 0444, directory, migration_show) &&
	    proc_create_single("engines", 0444, directory, engines_show) &&
	    (!(memsluice_features & MEMSLUICE_FEATURE_CENSUS) ||
	     proc_create("census", 0400, directory, &memsluice_census_ops)))
		return 0;
	if (directory)
		proc_remove(directory);
	return -ENOMEM;
}

void memsluice_procfs_stop(void)
{
	proc_remove(directory);
}
