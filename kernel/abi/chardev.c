// SPDX-License-Identifier: GPL-2.0
#include <linux/anon_inodes.h>
#include <linux/cgroup.h>
#include <linux/compat.h>
#include <linux/file.h>
#include <linux/fs.h>
#include <linux/miscdevice.h>
#include <linux/mm.h>
#include <linux/module.h>
#include <linux/poll.h>
#include <linux/ptrace.h>
#include <linux/sched/mm.h>
#include <linux/sched/task.h>
#include <linux/slab.h>
#include <linux/uaccess.h>

#include "kernel/abi/abi.h"
#include "kernel/channel/census.h"
#include "kernel/channel/nodes.h"
#include "kernel/channel/placement.h"
#include "kernel/channel/redistribute.h"
#include "kernel/compat/memory_tiers.h"
#include "kernel/compat/symbols.h"
#include "kernel/copy/engines.h"
#include "kernel/migrate/requests.h"
#include "kernel/tenant/tenant.h"

/* Sizes that the first version of the ABI had: nothing smaller was ever valid. */
static_assert(sizeof(struct memsluice_version) == 48);
static_assert(sizeof(struct memsluice_policy) == 24);
static_assert(sizeof(struct memsluice_tenant_set) == 40);
static_assert(sizeof(struct memsluice_tenant_clear) == 16);
static_assert(sizeof(struct memsluice_tenant_list) == 24);
static_assert(sizeof(struct memsluice_tenant_status) == 496);
static_assert(sizeof(struct memsluice_request_status) == 184);
#define MIGRATE_BYTES 64
static_assert(offsetof(struct memsluice_migrate, mib_per_s) == MIGRATE_BYTES);
static_assert(sizeof(struct memsluice_engine_status) == 80);
static_assert(sizeof(struct memsluice_engine_queue) == 112);
static_assert(sizeof(struct memsluice_engine_act) == 40);
static_assert(sizeof(struct memsluice_census_row) == 280);
static_assert(sizeof(struct memsluice_census) == 32);
static_assert(sizeof(struct memsluice_placement) == 552);
static_assert(sizeof(struct memsluice_channel_add) == 96);
static_assert(sizeof(struct memsluice_channel_remove) == 304);
static_assert(sizeof(struct memsluice_channel_status) == 128);

/*
 * Reads an extensible structure. Whatever the caller's has beyond ours must be zero. Size is the
 * first member of all of them.
 */
static int get_argument(void *argument, size_t size, size_t first_version_size,
			const void __user *from)
{
	u32 given;

	if (get_user(given, (const u32 __user *)from))
		return -EFAULT;
	if (given < first_version_size)
		return -EINVAL;
	if (given > PAGE_SIZE)
		return -E2BIG;
	return copy_struct_from_user(argument, size, from, given);
}

static int put_argument(const void *argument, size_t size, void __user *to)
{
	u32 given = *(const u32 *)argument;

	return copy_to_user(to, argument, min_t(size_t, size, given)) ? -EFAULT : 0;
}

#define get_struct(argument, from)                                                                 \
	get_argument(&(argument), sizeof(argument), sizeof(argument), from)
#define put_struct(argument, to) put_argument(&(argument), sizeof(argument), to)

static bool has_memory(s64 nid)
{
	return nid >= 0 && nid < MAX_NUMNODES && node_state(nid, N_MEMORY);
}

static bool has(u64 features)
{
	return (memsluice_features & features) == features;
}

static long ioctl_version(void __user *user)
{
	struct memsluice_version version;
	int err = get_struct(version, user);

	if (err)
		return err;
	version.abi_version = MEMSLUICE_ABI_VERSION;
	version.features = memsluice_features;
	memset(version.release, 0, sizeof(version.release));
	strscpy(version.release, MEMSLUICE_RELEASE);
	return put_struct(version, user);
}

static bool is_valid(const struct memsluice_policy *policy)
{
	return !(policy->flags & ~MEMSLUICE_POLICY_TIERING) && !policy->reserved &&
	       policy->promote_mib_per_s <= MEMSLUICE_MIB_PER_S_MAX &&
	       policy->demote_mib_per_s <= MEMSLUICE_MIB_PER_S_MAX;
}

static long ioctl_tenant_set(void __user *user)
{
	struct memsluice_tenant_set set;
	struct cgroup *cgroup;
	int err;

	if (!capable(CAP_SYS_ADMIN))
		return -EPERM;
	err = get_struct(set, user);
	if (err)
		return err;
	if (!is_valid(&set.policy))
		return -EINVAL;
	if ((set.policy.flags & MEMSLUICE_POLICY_TIERING) && !has(MEMSLUICE_FEATURE_TIERING))
		return -EOPNOTSUPP;
	cgroup = cgroup_get_from_fd(set.cgroup_fd);
	if (IS_ERR(cgroup))
		return PTR_ERR(cgroup);
	set.cgroup_id = cgroup_id(cgroup);
	err = memsluice_tenant_set(cgroup, &set.policy);
	cgroup_put(cgroup);
	return err ?: put_struct(set, user);
}

static long ioctl_tenant_clear(void __user *user)
{
	struct memsluice_tenant_clear clear;
	int err;

	if (!capable(CAP_SYS_ADMIN))
		return -EPERM;
	err = get_struct(clear, user);
	if (err)
		return err;
	if (clear.reserved)
		return -EINVAL;
	return memsluice_tenant_clear(clear.cgroup_id);
}

static long ioctl_tenant_list(void __user *user)
{
	struct memsluice_tenant_list list;
	struct memsluice_tenant *tenant;
	u64 __user *ids;
	u64 id = 0;
	int err = get_struct(list, user);

	if (err)
		return err;
	if (list.reserved)
		return -EINVAL;
	ids = u64_to_user_ptr(list.ids);
	list.count = 0;
	while ((tenant = memsluice_tenant_next(id))) {
		id = tenant->cgroup_id;
		memsluice_tenant_put(tenant);
		if (list.count < list.capacity && put_user(id, ids + list.count))
			return -EFAULT;
		list.count++;
	}
	return put_struct(list, user);
}

static long ioctl_tenant_status(void __user *user)
{
	struct memsluice_tenant_status status;
	struct memsluice_tenant *tenant;
	int err = get_struct(status, user);

	if (err)
		return err;
	if (status.reserved)
		return -EINVAL;
	tenant = memsluice_tenant_get(status.cgroup_id);
	if (!tenant)
		return -ENOENT;
	memsluice_tenant_status(tenant, &status);
	memsluice_tenant_put(tenant);
	return put_struct(status, user);
}

static int check_placement(const struct memsluice_placement *placement)
{
	u32 i;

	if (placement->reserved || placement->count > MEMSLUICE_CHANNELS_MAX ||
	    placement->granule_order > MEMSLUICE_GRANULE_ORDER_MAX)
		return -EINVAL;
	for (i = 0; i < placement->count; i++) {
		if (!has_memory(placement->channels[i].node))
			return -ENODEV;
	}
	for (; i < MEMSLUICE_CHANNELS_MAX; i++) {
		if (placement->channels[i].node || placement->channels[i].weight)
			return -EINVAL;
	}
	return 0;
}

static long ioctl_placement_set(void __user *user)
{
	struct memsluice_placement *placement;
	int err;

	if (!capable(CAP_SYS_ADMIN))
		return -EPERM;
	if (!has(MEMSLUICE_FEATURE_PLACEMENT))
		return -EOPNOTSUPP;
	placement = kzalloc(sizeof(*placement), GFP_KERNEL_ACCOUNT);
	if (!placement)
		return -ENOMEM;
	err = get_struct(*placement, user);
	if (!err)
		err = check_placement(placement);
	if (!err)
		err = memsluice_placement_set(placement);
	kfree(placement);
	return err;
}

static long ioctl_placement_get(void __user *user)
{
	struct memsluice_placement *placement = kzalloc(sizeof(*placement), GFP_KERNEL_ACCOUNT);
	int err;

	if (!placement)
		return -ENOMEM;
	err = get_struct(*placement, user);
	if (!err)
		err = memsluice_placement_get(placement);
	if (!err)
		err = put_struct(*placement, user);
	kfree(placement);
	return err;
}

static int put_request_status(struct memsluice_request *request, void __user *user)
{
	struct memsluice_request_status status;
	int err = get_struct(status, user);

	if (err)
		return err;
	if (status.reserved)
		return -EINVAL;
	memsluice_request_status(request, &status);
	return put_struct(status, user);
}

static __poll_t request_poll(struct file *file, poll_table *wait)
{
	struct memsluice_request *request = file->private_data;

	poll_wait(file, &request->ended, wait);
	return memsluice_request_has_ended(request) ? EPOLLIN | EPOLLRDNORM : 0;
}

static long request_ioctl(struct file *file, unsigned int command, unsigned long argument)
{
	struct memsluice_request *request = file->private_data;

	switch (command) {
	case MEMSLUICE_IOC_REQUEST_STATUS:
		return put_request_status(request, (void __user *)argument);
	case MEMSLUICE_IOC_REQUEST_CANCEL:
		memsluice_request_cancel(request);
		return 0;
	}
	return -ENOTTY;
}

static int request_release(struct inode *inode, struct file *file)
{
	struct memsluice_request *request = file->private_data;

	memsluice_request_cancel(request);
	memsluice_request_put(request);
	return 0;
}

static const struct file_operations request_fops = {
	.owner = THIS_MODULE,
	.poll = request_poll,
	.unlocked_ioctl = request_ioctl,
	.compat_ioctl = compat_ptr_ioctl,
	.release = request_release,
};

/* The rights of move_pages(2): ptrace read access, the security module, and the target's cpuset. */
static struct mm_struct *get_process(int pidfd, int target_node, pid_t *pid)
{
	struct mm_struct *mm = ERR_PTR(-EPERM);
	struct task_struct *task;
	nodemask_t allowed;
	unsigned int flags;
	int err;

	task = memsluice_call(pidfd_get_task)(pidfd, &flags);
	if (IS_ERR(task))
		return ERR_CAST(task);
	if (!memsluice_call(ptrace_may_access)(task, PTRACE_MODE_READ_REALCREDS))
		goto put_task;
	err = memsluice_call(security_task_movememory)(task);
	mm = ERR_PTR(err);
	if (err)
		goto put_task;
	memsluice_allowed_nodes(task, &allowed);
	mm = ERR_PTR(-EACCES);
	if (!node_isset(target_node, allowed))
		goto put_task;
	*pid = task_pid_vnr(task);
	mm = get_task_mm(task);
	if (!mm) {
		mm = ERR_PTR(-ESRCH);
	} else {
		mmgrab(mm);
		mmput(mm);
	}
put_task:
	put_task_struct(task);
	return mm;
}

static int take_range(const struct memsluice_migrate *migrate, struct memsluice_request_spec *spec)
{
	u64 end;

	if (migrate->results || !migrate->length || !PAGE_ALIGNED(migrate->address) ||
	    !PAGE_ALIGNED(migrate->length) ||
	    check_add_overflow(migrate->address, migrate->length, &end))
		return -EINVAL;
	spec->start = migrate->address;
	spec->end = min_t(u64, end, TASK_SIZE_MAX);
	return spec->start < spec->end ? 0 : -EINVAL;
}

static int take_addresses(const struct memsluice_migrate *migrate,
			  struct memsluice_request_spec *spec)
{
	unsigned long i;

	if (!migrate->length || migrate->length > MEMSLUICE_ADDRESSES_MAX)
		return -EINVAL;
	if (migrate->results && (migrate->flags & MEMSLUICE_MIGRATE_ASYNC))
		return -EINVAL;
	spec->count = migrate->length;
	spec->addresses =
		vmemdup_array_user(u64_to_user_ptr(migrate->address), spec->count, sizeof(u64));
	if (IS_ERR(spec->addresses)) {
		int err = PTR_ERR(spec->addresses);

		spec->addresses = NULL;
		return err;
	}
	for (i = 0; i < spec->count; i++)
		spec->addresses[i] &= PAGE_MASK;
	if (!migrate->results)
		return 0;
	spec->results = kvcalloc(spec->count, sizeof(s32), GFP_KERNEL_ACCOUNT);
	return spec->results ? 0 : -ENOMEM;
}

static int take_process(const struct memsluice_migrate *migrate,
			struct memsluice_request_spec *spec)
{
	struct mm_struct *mm;
	int err;

	if (!has(MEMSLUICE_FEATURE_MIGRATE))
		return -EOPNOTSUPP;
	if (migrate->cgroup_id || migrate->source_node != NUMA_NO_NODE)
		return -EINVAL;
	if (spec->all_mappings && !capable(CAP_SYS_NICE))
		return -EPERM;
	mm = get_process(migrate->pidfd, spec->target_node, &spec->pid);
	if (IS_ERR(mm))
		return PTR_ERR(mm);
	spec->mm = mm;
	err = spec->kind == MEMSLUICE_MIGRATE_RANGE ? take_range(migrate, spec) :
						      take_addresses(migrate, spec);
	if (err) {
		mmdrop(mm);
		kvfree(spec->addresses);
	}
	return err;
}

static int take_cgroup(const struct memsluice_migrate *migrate, struct memsluice_request_spec *spec)
{
	struct cgroup *cgroup;

	if (!capable(CAP_SYS_ADMIN))
		return -EPERM;
	if (!has(MEMSLUICE_FEATURE_MIGRATE_TENANT))
		return -EOPNOTSUPP;
	if (migrate->pidfd != -1 || migrate->address || migrate->length || migrate->results ||
	    migrate->source_node == migrate->target_node)
		return -EINVAL;
	if (!has_memory(migrate->source_node))
		return -ENODEV;
	cgroup = cgroup_get_from_id(migrate->cgroup_id);
	if (IS_ERR(cgroup))
		return PTR_ERR(cgroup);
	spec->source_node = migrate->source_node;
	spec->all_mappings = true;
	spec->cgroup = cgroup;
	spec->cgroup_id = migrate->cgroup_id;
	return 0;
}

/* The marks are those of NUMA balancing; whose memory is walked is known from scanning. */
static bool can_move_on_touch(void)
{
	return IS_ENABLED(CONFIG_NUMA_BALANCING) && has(MEMSLUICE_FEATURE_HOTNESS_SCAN) &&
	       has(MEMSLUICE_FEATURE_PLACEMENT);
}

static int take_placed(const struct memsluice_migrate *migrate, struct memsluice_request_spec *spec)
{
	bool on_touch = migrate->flags & MEMSLUICE_MIGRATE_ON_TOUCH;
	int err;

	if (!capable(CAP_SYS_ADMIN))
		return -EPERM;
	if (!has(MEMSLUICE_FEATURE_REDISTRIBUTE) || (on_touch && !can_move_on_touch()))
		return -EOPNOTSUPP;
	if (migrate->pidfd != -1 || migrate->address || migrate->length || migrate->results ||
	    migrate->target_node != NUMA_NO_NODE || (on_touch && migrate->mib_per_s))
		return -EINVAL;
	if (migrate->source_node != NUMA_NO_NODE && !has_memory(migrate->source_node))
		return -ENODEV;
	spec->source_node = migrate->source_node;
	spec->all_mappings = true;
	spec->cgroup_id = migrate->cgroup_id;
	err = memsluice_redistribute(spec, on_touch);
	if (err)
		return err;
	spec->cgroup = cgroup_get_from_id(migrate->cgroup_id);
	return PTR_ERR_OR_ZERO(spec->cgroup);
}

static int take_spec(const struct memsluice_migrate *migrate, struct memsluice_request_spec *spec)
{
	bool placed = migrate->kind == MEMSLUICE_MIGRATE_TENANT_PLACED;

	if (migrate->reserved || migrate->mib_per_s > MEMSLUICE_MIB_PER_S_MAX ||
	    migrate->flags & ~(MEMSLUICE_MIGRATE_ASYNC | MEMSLUICE_MIGRATE_ALL_MAPPINGS |
			       MEMSLUICE_MIGRATE_IN_TREE | MEMSLUICE_MIGRATE_ON_TOUCH))
		return -EINVAL;
	if (!placed && (migrate->flags & MEMSLUICE_MIGRATE_ON_TOUCH))
		return -EINVAL;
	if (!placed && !has_memory(migrate->target_node))
		return -ENODEV;
	spec->kind = migrate->kind;
	spec->all_mappings = migrate->flags & MEMSLUICE_MIGRATE_ALL_MAPPINGS;
	spec->in_tree = migrate->flags & MEMSLUICE_MIGRATE_IN_TREE;
	spec->mib_per_s = migrate->mib_per_s;
	spec->target_node = migrate->target_node;
	spec->source_node = NUMA_NO_NODE;
	switch (migrate->kind) {
	case MEMSLUICE_MIGRATE_RANGE:
	case MEMSLUICE_MIGRATE_ADDRESSES:
		return take_process(migrate, spec);
	case MEMSLUICE_MIGRATE_TENANT_NODE:
		return take_cgroup(migrate, spec);
	case MEMSLUICE_MIGRATE_TENANT_PLACED:
		return take_placed(migrate, spec);
	}
	return -EINVAL;
}

static int report(struct memsluice_request *request, const struct memsluice_migrate *migrate)
{
	const struct memsluice_request_spec *spec = &request->spec;

	if (spec->results && copy_to_user(u64_to_user_ptr(migrate->results), spec->results,
					  spec->count * sizeof(s32)))
		return -EFAULT;
	return migrate->status ? put_request_status(request, u64_to_user_ptr(migrate->status)) : 0;
}

static long run_now(struct memsluice_request *request, const struct memsluice_migrate *migrate)
{
	int err;

	memsluice_request_run(request);
	err = report(request, migrate);
	return err ?: request->error;
}

/* The descriptor appears last: once it is there, nothing can fail any more. */
static long run_later(struct memsluice_request *request, const struct memsluice_migrate *migrate)
{
	struct file *file;
	int fd, err;

	fd = get_unused_fd_flags(O_CLOEXEC);
	if (fd < 0)
		return fd;
	file = anon_inode_getfile("[memsluice-request]", &request_fops, request, O_RDONLY);
	if (IS_ERR(file)) {
		put_unused_fd(fd);
		return PTR_ERR(file);
	}
	refcount_inc(&request->references);
	err = report(request, migrate);
	if (err) {
		put_unused_fd(fd);
		fput(file);
		return err;
	}
	memsluice_request_start(request);
	fd_install(fd, file);
	return fd;
}

static long ioctl_migrate(void __user *user)
{
	struct memsluice_request_spec spec = {};
	struct memsluice_request *request;
	struct memsluice_migrate migrate;
	long ret = get_argument(&migrate, sizeof(migrate), MIGRATE_BYTES, user);

	if (ret)
		return ret;
	ret = take_spec(&migrate, &spec);
	if (ret)
		return ret;
	request = memsluice_request_new(&spec);
	if (IS_ERR(request))
		return PTR_ERR(request);
	ret = migrate.flags & MEMSLUICE_MIGRATE_ASYNC ? run_later(request, &migrate) :
							run_now(request, &migrate);
	memsluice_request_put(request);
	return ret;
}

static long ioctl_engine_status(void __user *user)
{
	struct memsluice_engine_status status;
	int err = get_struct(status, user) ?: memsluice_copy_engine_status(&status);

	return err ?: put_struct(status, user);
}

static long ioctl_engine_queue(void __user *user)
{
	struct memsluice_engine_queue queue;
	int err = get_struct(queue, user) ?: memsluice_copy_engine_queue(&queue);

	return err ?: put_struct(queue, user);
}

static long ioctl_engine_act(void __user *user)
{
	struct memsluice_engine_act act;

	if (!capable(CAP_SYS_ADMIN))
		return -EPERM;
	return get_struct(act, user) ?: memsluice_copy_engine_act(&act);
}

/* Rows of the caller's size: what he does not know is left out, what we do not know is zero. */
static int put_row(const struct memsluice_census_row *row, void __user *to, u32 size)
{
	size_t known = min_t(size_t, size, sizeof(*row));

	return copy_to_user(to, row, known) || clear_user(to + known, size - known) ? -EFAULT : 0;
}

static int put_rows(const struct memsluice_census_table *table,
		    const struct memsluice_census *census)
{
	void __user *to = u64_to_user_ptr(census->rows);
	struct memsluice_census_entry *entry;
	u32 left = census->capacity;
	int err = 0;

	list_for_each_entry(entry, &table->entries, link) {
		if (!left--)
			break;
		err = put_row(&entry->row, to, census->row_size);
		if (err)
			break;
		to += census->row_size;
	}
	return err;
}

static long ioctl_census(void __user *user)
{
	struct memsluice_census_table table;
	struct memsluice_census census;
	int err;

	if (!capable(CAP_SYS_ADMIN))
		return -EPERM;
	err = get_struct(census, user);
	if (err)
		return err;
	if (census.reserved || census.row_size < sizeof(struct memsluice_census_row) ||
	    census.row_size > PAGE_SIZE || census.row_size % sizeof(u64))
		return -EINVAL;
	if (!has(MEMSLUICE_FEATURE_CENSUS))
		return -EOPNOTSUPP;
	if (census.node != NUMA_NO_NODE && !has_memory(census.node))
		return -ENODEV;
	err = memsluice_census_take(census.node, &table) ?: put_rows(&table, &census);
	census.count = table.count;
	memsluice_census_free(&table);
	return err ?: put_struct(census, user);
}

static long ioctl_channel_add(void __user *user)
{
	struct memsluice_channel_add add;
	int err;

	if (!capable(CAP_SYS_ADMIN))
		return -EPERM;
	err = get_struct(add, user);
	if (err)
		return err;
	if ((add.start || add.length) && !has(MEMSLUICE_FEATURE_HOTPLUG))
		return -EOPNOTSUPP;
	return memsluice_channel_add(&add) ?: put_struct(add, user);
}

/* What has become of it is told also when it has failed. */
static long ioctl_channel_remove(void __user *user)
{
	struct memsluice_channel_remove given, remove = {};
	int err;

	if (!capable(CAP_SYS_ADMIN))
		return -EPERM;
	err = get_struct(given, user);
	if (err)
		return err;
	remove.size = given.size;
	remove.node = given.node;
	remove.deadline_ms = given.deadline_ms;
	err = memsluice_channel_remove(&remove);
	return put_struct(remove, user) ?: err;
}

static long ioctl_channel_status(void __user *user)
{
	struct memsluice_channel_status status;
	int err = get_struct(status, user) ?: memsluice_channel_status(&status);

	return err ?: put_struct(status, user);
}

static long device_ioctl(struct file *file, unsigned int command, unsigned long argument)
{
	void __user *user = (void __user *)argument;

	switch (command) {
	case MEMSLUICE_IOC_VERSION:
		return ioctl_version(user);
	case MEMSLUICE_IOC_TENANT_SET:
		return ioctl_tenant_set(user);
	case MEMSLUICE_IOC_TENANT_CLEAR:
		return ioctl_tenant_clear(user);
	case MEMSLUICE_IOC_TENANT_LIST:
		return ioctl_tenant_list(user);
	case MEMSLUICE_IOC_TENANT_STATUS:
		return ioctl_tenant_status(user);
	case MEMSLUICE_IOC_PLACEMENT_SET:
		return ioctl_placement_set(user);
	case MEMSLUICE_IOC_PLACEMENT_GET:
		return ioctl_placement_get(user);
	case MEMSLUICE_IOC_MIGRATE:
		return ioctl_migrate(user);
	case MEMSLUICE_IOC_ENGINE_STATUS:
		return ioctl_engine_status(user);
	case MEMSLUICE_IOC_ENGINE_QUEUE:
		return ioctl_engine_queue(user);
	case MEMSLUICE_IOC_ENGINE_ACT:
		return ioctl_engine_act(user);
	case MEMSLUICE_IOC_CENSUS:
		return ioctl_census(user);
	case MEMSLUICE_IOC_CHANNEL_ADD:
		return ioctl_channel_add(user);
	case MEMSLUICE_IOC_CHANNEL_REMOVE:
		return ioctl_channel_remove(user);
	case MEMSLUICE_IOC_CHANNEL_STATUS:
		return ioctl_channel_status(user);
	}
	return -ENOTTY;
}

static const struct file_operations device_fops = {
	.owner = THIS_MODULE,
	.unlocked_ioctl = device_ioctl,
	.compat_ioctl = compat_ptr_ioctl,
	.llseek = noop_llseek,
};

/* Rights are checked call by call, as for move_pages(2): everybody may open the device. */
static struct miscdevice device = {
	.minor = MISC_DYNAMIC_MINOR,
	.name = MEMSLUICE_DEVICE,
	.fops = &device_fops,
	.mode = 0666,
};

int memsluice_chardev_start(void)
{
	return misc_register(&device);
}

void memsluice_chardev_stop(void)
{
	misc_deregister(&device);
}
