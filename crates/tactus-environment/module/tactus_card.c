// SPDX-License-Identifier: GPL-2.0 OR MIT
/*
 * Answers tactus's interrupt card from within the kernel of a Linux guest (docs/design/card.md).
 *
 * The card is QEMU's ivshmem-doorbell. Its memory (BAR 2) is shared with a thread of the host, which writes a number to it
 * and raises the first vector of MSI-X; the handler copies the number to another word, and counts in a third how often it
 * ran. That is all: nothing is allocated, and nobody is woken. IRQF_NO_THREAD keeps the handler in the interrupt itself on
 * PREEMPT_RT, too, where it would else be a thread.
 *
 * tactus builds it with the headers of the guest's kernel whenever a plan says `answer = "kernel"`.
 */
#include <linux/interrupt.h>
#include <linux/io.h>
#include <linux/module.h>
#include <linux/pci.h>

#define CARD_MEMORY 2 /* BAR */

/* The words of the card, 128 bytes apart: the number sent, the number answered, how often the handler ran. */
#define SENT 0
#define ANSWERED 32
#define HANDLED 64
#define CARD_WORDS (HANDLED + 1)

static irqreturn_t tactus_card_answer(int irq, void *data)
{
	u32 *words = data;

	WRITE_ONCE(words[ANSWERED], smp_load_acquire(&words[SENT]));
	smp_store_release(&words[HANDLED], words[HANDLED] + 1);
	return IRQ_HANDLED;
}

static int tactus_card_probe(struct pci_dev *card, const struct pci_device_id *id)
{
	u32 *words;
	int error;

	error = pcim_enable_device(card);
	if (error)
		return error;
	if (pci_resource_len(card, CARD_MEMORY) < CARD_WORDS * sizeof(u32))
		return -ENODEV;
	/* It is memory, and no register: it is cached as the host's own mapping of it is. */
	words = devm_memremap(&card->dev, pci_resource_start(card, CARD_MEMORY), PAGE_SIZE, MEMREMAP_WB);
	if (IS_ERR(words))
		return PTR_ERR(words);
	pci_set_master(card);
	error = pci_alloc_irq_vectors(card, 1, 1, PCI_IRQ_MSIX);
	if (error < 0)
		return error;
	error = request_irq(pci_irq_vector(card, 0), tactus_card_answer, IRQF_NO_THREAD, "tactus-card", words);
	if (error)
		pci_free_irq_vectors(card);
	pci_set_drvdata(card, words);
	return error;
}

static void tactus_card_remove(struct pci_dev *card)
{
	free_irq(pci_irq_vector(card, 0), pci_get_drvdata(card));
	pci_free_irq_vectors(card);
}

static const struct pci_device_id tactus_card_ids[] = {
	{ PCI_DEVICE(PCI_VENDOR_ID_REDHAT_QUMRANET, 0x1110) },
	{ }
};
MODULE_DEVICE_TABLE(pci, tactus_card_ids);

static struct pci_driver tactus_card_driver = {
	.name = "tactus_card",
	.id_table = tactus_card_ids,
	.probe = tactus_card_probe,
	.remove = tactus_card_remove,
};
module_pci_driver(tactus_card_driver);

MODULE_DESCRIPTION("Answers tactus's interrupt card");
MODULE_LICENSE("Dual MIT/GPL");
